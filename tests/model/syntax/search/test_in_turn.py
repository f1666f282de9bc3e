"""The gaps of one window are filled in turn, by guesses and by the grammar."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import Countdown, require

from lacuna_model.core import work
from lacuna_model.core.constraint import Commit, GapView
from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.check.windows import Window
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.region.draft import Fill
from lacuna_model.syntax.region.gap_text import GapText
from lacuna_model.syntax.region.region_rules import RegionRules
from lacuna_model.syntax.search import in_turn as turns
from lacuna_model.syntax.search import search
from lacuna_model.syntax.search.candidates import Candidates
from lacuna_model.syntax.search.in_turn import InTurn, Queue, solve_windows
from lacuna_model.syntax.search.queues import Queues
from lacuna_model.syntax.text.minimal_completions import Closer
from lacuna_model.syntax.text.vocabulary import vocabulary_of


def test_the_last_search_before_a_proposal_and_the_last_attempt_ask_the_grammar(
    tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(search.Search, "hard", lambda self, gaps, held: asked.append(len(held)))
    text = b"int f( {\n\n} ) ] int\n"
    constraint = SyntaxConstraint(text, [Region(9, 9, max_tokens=1)], require("c"), tokens, strict=True)
    gaps = [GapView((), (None,))]
    constraint.foresee(gaps)
    assert asked == [1]
    for _ in range(search.ATTEMPTS - search.BARE_ATTEMPTS):
        assert asked == [1]
        constraint.admit(gaps, [Commit(0, 0, 1)])
    assert asked == [1, 1]  # the last attempt also takes fills with a misplaced node


def cut(name: str, parts: Sequence[bytes], tokens: SmallTokens, clock: Clock | None = None) -> tuple[Document, Queue]:
    """A document of these parts with gaps between them, and a queue of candidates for each gap, without a draft."""
    places = [len(b"".join(parts[:count])) for count in range(1, len(parts))]
    document = Document(b"".join(parts), [(place, place) for place in places], require(name), clock)
    document.widen()
    vocabulary = vocabulary_of(tokens)
    gaps = [
        GapText(vocabulary, RegionRules(Region(place, place), b""), partial(_closer, document, gap))
        for gap, place in enumerate(places)
    ]
    view = GapView((), (), budget=32)
    return document, partial(Queues(vocabulary, gaps, [b""] * len(gaps)).bare, view)


# The text after the first gap begins with the parameter types of a function type. The second gap comes later.
TYPES = (b"fn f() {}\n\n", b"\n    fn((A, B)) -> C<D>,\n>;\n\nfn g() {\n    a();\n", b"\n    b();\n}\n")


def test_a_gap_without_a_valid_guess_is_filled_by_the_grammar(tokens: SmallTokens) -> None:
    document, queue = cut("rust", TYPES, tokens)
    held: list[Fill | None] = [None, None]
    solve_windows(document, held, queue)
    assert held == [None, None]
    solve_windows(document, held, queue, {})
    texts = tuple(fill.text for fill in held if fill is not None)
    assert len(texts) == 2
    assert document.check_fresh(texts).valid


def test_a_gap_is_filled_after_the_fills_of_the_gaps_before_it(tokens: SmallTokens) -> None:
    parts = (b"f()\n", b"\n    x = g()\n", b"\n        y = h()\n")
    document, queue = cut("python", parts, tokens)
    asked: list[bytes] = []

    def listening(gap: int, closer: Callable[[], Closer] | None = None) -> Candidates:
        if closer is not None:
            asked.append(closer()._sides.text)
        return queue(gap, closer)

    held: list[Fill | None] = [None, None]
    solve_windows(document, held, listening, {})
    assert held[0] is not None
    assert set(asked) == {parts[0] + held[0].text + parts[1]}


# The text after the first gap has an "else" without an "if". The second gap is in a comment.
COMMENTED = (
    b"class A {\n  int f() {\n",
    b"\n    return g();\n  else\n    return 1;\n  }\n\n  /**\n   * Says more.\n",
    b"\n   */\n  int h() {\n    return 2;\n  }\n}\n",
)


def test_a_comment_that_contains_the_next_gap_is_ended_there(tokens: SmallTokens) -> None:
    document, queue = cut("java", COMMENTED, tokens)
    held: list[Fill | None] = [None, None]
    solve_windows(document, held, queue, {})
    texts = tuple(fill.text for fill in held if fill is not None)
    assert len(texts) == 2
    assert document.check_fresh(texts).valid


# With an empty first gap the text is valid up to the second gap, but then the second gap has no valid fill.
DECLARED = (b"package a\n\ntype A int\n\n", b"\n\n\tB = c // d\n", b"\n)\n\nvar e = f(true)\n")


def test_if_a_gap_finds_no_fill_other_fills_of_the_gap_before_are_tried(
    tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, queue = cut("go", DECLARED, tokens)
    held: list[Fill | None] = [None, None]
    with monkeypatch.context() as patched:
        patched.setattr(turns, "MAX_TURNS", 1)
        solve_windows(document, held, queue, {})
        assert held == [None, None]
    solve_windows(document, held, queue, {})
    texts = tuple(fill.text for fill in held if fill is not None)
    assert len(texts) == 2
    assert document.check_fresh(texts).valid


def test_a_search_that_the_clock_interrupts_continues_where_it_stopped(tokens: SmallTokens) -> None:
    works = []
    for asked_for in (1_000_000, 150):  # how often a call may ask the clock
        clock = Countdown()
        document, queue = cut("go", DECLARED, tokens, clock)
        held: list[Fill | None] = [None, None]
        left_off: dict[tuple[Window, bool], InTurn] = {}
        calls, before = 0, work.spent()
        while None in held:
            clock.left, calls = asked_for, calls + 1
            solve_windows(document, held, queue, left_off)
            assert calls < 100
        works.append(work.spent() - before)
        texts = tuple(fill.text for fill in held if fill is not None)
        assert document.check_fresh(texts).valid
    assert calls > 2
    assert works[1] < 1.5 * works[0]


def _closer(document: Document, gap: int) -> Closer:
    balance, index = document.balance(gap)
    return Closer(balance.sides(index))
