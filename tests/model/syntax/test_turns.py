"""Gaps of one window in turn, with the brackets shared in the likeliest way and in others."""

from functools import partial

import pytest

from lacuna_model.constraint import Commit, ConstraintStats, GapView
from lacuna_model.params import Region
from lacuna_model.syntax import SyntaxConstraint, witness
from lacuna_model.syntax.balance import Balance, Sides
from lacuna_model.syntax.candidates import Candidates, Fill, GapText
from lacuna_model.syntax.closing import Closer
from lacuna_model.syntax.document import Document
from lacuna_model.syntax.judge import Judge
from lacuna_model.syntax.queues import Queues
from lacuna_model.syntax.region_rules import RegionRules
from lacuna_model.syntax.turns import solve_otherwise, solve_windows
from lacuna_model.syntax.vocabulary import vocabulary_of

from .conftest import SmallTokens
from .drive import require

# The second gap must end what the first one begins; the lines' columns speak for a block of the first alone.
PIECES = (b"int f(int a) {\n", b"\n    b();\n    c();\n", b"\n    d();\n}\n")


def test_another_way_serves_where_the_likeliest_does_not(tokens: SmallTokens) -> None:
    text = b"".join(PIECES)
    places = [len(PIECES[0]), len(PIECES[0] + PIECES[1])]
    document = Document(text, [(place, place) for place in places], require("c"))
    vocabulary = vocabulary_of(tokens)
    gaps = [
        GapText(vocabulary, RegionRules(Region(place, place), b""), partial(_closer, document, gap))
        for gap, place in enumerate(places)
    ]
    queues = Queues(vocabulary, document, gaps, [b"", b""])
    view = GapView((), (), budget=32)
    asked: list[Balance | Sides] = []

    def between(gap: int, sides: Sides) -> Candidates:
        asked.append(sides)
        return queues.bare(view, gap, sides)

    held: list[Fill | None] = [None, None]
    solve_otherwise(document, held, between, 100, 1.0)
    assert [sides.target for sides in asked[:2]] != [document.balance(gap)[0].sides(gap).target for gap in (0, 1)]
    texts = tuple(fill.text for fill in held if fill is not None)
    assert Judge(document, ConstraintStats()).check(texts, thorough=True).valid
    again: list[Fill | None] = [None, None]
    solve_windows(document, again, partial(queues.bare, view), 100, 1.0)
    assert texts != tuple(fill.text for fill in again if fill is not None)


def test_the_last_attempt_tries_other_ways(tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(witness, "solve_otherwise", lambda document, held, *rest: asked.append(len(held)))
    text = b"int f( {\n\n} ) ] int\n"
    constraint = SyntaxConstraint(text, [Region(9, 9, max_tokens=1)], require("c"), tokens, strict=True)
    for _ in range(witness.ATTEMPTS):
        assert not asked
        constraint.admit([GapView((), (None,))], [Commit(0, 0, 1)])
    assert asked == [1]


def _closer(document: Document, gap: int) -> Closer:
    balance, index = document.balance(gap)
    return Closer(balance.sides(index))
