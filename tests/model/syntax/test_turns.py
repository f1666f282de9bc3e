"""Gaps of one window in turn, by guesses and by the grammar."""

from functools import partial

import pytest

from lacuna_model.constraint import Commit, GapView
from lacuna_model.params import Region
from lacuna_model.syntax import SyntaxConstraint, search, witness
from lacuna_model.syntax.candidates import Fill, GapText
from lacuna_model.syntax.closing import Closer
from lacuna_model.syntax.document import Document
from lacuna_model.syntax.queues import Queues
from lacuna_model.syntax.region_rules import RegionRules
from lacuna_model.syntax.turns import solve_by_grammar, solve_windows
from lacuna_model.syntax.vocabulary import vocabulary_of

from .conftest import SmallTokens
from .drive import require


def test_the_last_attempt_asks_the_grammar(tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(search, "solve_by_grammar", lambda document, held, *rest: asked.append(len(held)))
    text = b"int f( {\n\n} ) ] int\n"
    constraint = SyntaxConstraint(text, [Region(9, 9, max_tokens=1)], require("c"), tokens, strict=True)
    for _ in range(witness.ATTEMPTS):
        assert not asked
        constraint.admit([GapView((), (None,))], [Commit(0, 0, 1)])
    assert asked == [1]


# A gap whose text behind goes on with the types of a function's parameters, and one behind them.
TYPES = (b"fn f() {}\n\n", b"\n    fn((A, B)) -> C<D>,\n>;\n\nfn g() {\n    a();\n", b"\n    b();\n}\n")


def test_a_gap_that_no_guess_serves_is_filled_by_the_grammar(tokens: SmallTokens) -> None:
    text = b"".join(TYPES)
    places = [len(TYPES[0]), len(TYPES[0] + TYPES[1])]
    document = Document(text, [(place, place) for place in places], require("rust"))
    document.widen()
    vocabulary = vocabulary_of(tokens)
    gaps = [
        GapText(vocabulary, RegionRules(Region(place, place), b""), partial(_closer, document, gap))
        for gap, place in enumerate(places)
    ]
    view = GapView((), (), budget=32)
    queue = partial(Queues(vocabulary, document, gaps, [b"", b""]).bare, view)
    held: list[Fill | None] = [None, None]
    solve_windows(document, held, queue, 200, 1.0)
    assert held == [None, None]
    solve_by_grammar(document, held, queue, 5, 1.0)
    texts = tuple(fill.text for fill in held if fill is not None)
    assert len(texts) == 2
    assert document.check_fresh(texts).valid


def _closer(document: Document, gap: int) -> Closer:
    balance, index = document.balance(gap)
    return Closer(balance.sides(index))
