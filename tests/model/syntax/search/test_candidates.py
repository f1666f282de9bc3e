"""The candidate queue of one gap."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import between, require

from lacuna_model.core.constraint import GapView
from lacuna_model.core.params import Region
from lacuna_model.syntax.region.draft import lay_out
from lacuna_model.syntax.region.gap_text import GapText
from lacuna_model.syntax.region.region_rules import RegionRules
from lacuna_model.syntax.search.candidates import MAX_REFUSED, Candidates, _in_turns
from lacuna_model.syntax.text.vocabulary import vocabulary_of


class Refusing(RegionRules):
    """Rules that refuse every fill and count the fills."""

    def __init__(self) -> None:
        super().__init__(Region(0, 0), b"")
        self.asked = 0

    def accepts(self, fill: bytes) -> bool:
        """Returns False."""
        self.asked += 1
        return False


def view(tokens: SmallTokens, texts: list[list[bytes]]) -> GapView:
    """Open slots with these tokens as their candidates, best first."""
    known = {tokens.token_bytes(token): token for token in range(tokens.vocab_size)}
    ids = np.array([[known[text] for text in slot] for slot in texts], dtype=np.int64)
    logp = np.tile(np.linspace(-0.1, -3.0, ids.shape[1], dtype=np.float32), (len(ids), 1))
    return GapView((), (None,) * len(ids), ids, logp, budget=0)


def queue_of(tokens: SmallTokens, seen: GapView, rules: RegionRules) -> Candidates:
    queue = Candidates(GapText(vocabulary_of(tokens), rules))
    draft = lay_out(seen, {}, tokens.eog_id)
    assert draft is not None
    queue.add(draft, base=0.0)
    return queue


def test_a_search_ends_after_a_limited_number_of_refused_fills(tokens: SmallTokens) -> None:
    rules = Refusing()
    letters = [bytes([letter]) for letter in b"abcdefgh"]
    assert queue_of(tokens, view(tokens, [letters] * 12), rules).pop() is None
    assert 0 < rules.asked <= MAX_REFUSED


def test_no_completion_is_searched_for_if_no_slot_is_left(tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def completions(_gap: GapText, prefix: tuple[int, ...]) -> Iterator[bytes]:
        asked.append(len(prefix))
        return iter(())

    monkeypatch.setattr(GapText, "completions", completions)
    for written in (2, 3):
        seen = view(tokens, [[b"a", b"b"]] * 3)
        queue = queue_of(tokens, replace(seen, slots=(5,) * written + (None,) * (3 - written)), Refusing())
        while queue._heap:
            queue.pop()
    assert asked == [2]


def test_a_search_whose_time_is_up_tries_one_more_fill(tokens: SmallTokens) -> None:
    rules = Refusing()
    letters = [bytes([letter]) for letter in b"abcdefgh"]
    assert queue_of(tokens, view(tokens, [letters] * 12), rules).pop(lambda: True) is None
    assert rules.asked == 1


def test_the_healed_prefix_alone_can_be_a_fill(tokens: SmallTokens) -> None:
    gap = GapText(
        vocabulary_of(tokens), RegionRules(Region(0, 0), b""), lambda: between("x = (", "y = 1", require("python"))[1]
    )
    gap.prefix = b"\n"
    seen = GapView((), (None,) * 8, budget=0, prefix=gap.prefix)
    queue = Candidates(gap)
    queue.add_bare(lay_out(seen, {}, tokens.eog_id))
    found = [fill for fill in (queue.pop() for _ in range(8)) if fill is not None]
    assert (gap.prefix, b"") in [(tokens.decode_bytes(fill.tokens), fill.text) for fill in found]


def test_a_fill_has_the_cost_of_the_cheapest_way_to_it(tokens: SmallTokens) -> None:
    known = view(tokens, [[b"a", b"b"]] * 4)
    ends = np.where(known.ids == known.ids[0, 1], tokens.eog_id, known.ids)
    # Two ways lead to the empty fill: the end token of the doubtful draft, at a high cost, or the fixed part of the
    # draft without a completion, at a low cost.
    queue = queue_of(tokens, GapView((), (None,) * 4, ends, known.logp - 2, budget=0), RegionRules(Region(0, 0), b""))
    first = queue.pop()
    assert first is not None
    assert first.text == b""


def gap_in_script(
    tokens: SmallTokens,
    asked: list[bytes] | None = None,
    left: str = "a();\n",
    right: str = "\nb();\n",
    *,
    reads: bool | None = None,
) -> GapText:
    """A gap with a fake grammar. It notes what it completes in ``asked``; ``reads`` tells whether it reads any text."""

    def repair(text: bytes) -> Iterator[bytes]:
        if asked is not None:
            asked.append(text)
        yield from (b")", b"))", b")))")

    closer = between(left, right, require("javascript"))[1]
    return GapText(vocabulary_of(tokens), RegionRules(Region(0, 0), b""), lambda: closer, repair, lambda _: reads)


def ids(tokens: SmallTokens, text: str) -> tuple[int, ...]:
    return tuple(tokens.encode(text))


@pytest.mark.parametrize(
    ("written", "closing", "after", "tails"),
    [
        ("f(", b"x)", "f(g", []),  # the words g and x would become gx
        ("f(", b"x)", "f($", []),
        ("f(", b"x)", "f(1", []),
        ("f(", b"x)", "f(g + ", [b"x)"]),
        ("f(g", b")", "f(h", [b")"]),
        ("f(g", b")", "f(g(", []),  # one more bracket is open
        ("f(g", b"", "f(h", []),
    ],
)
def test_the_closing_text_of_a_fill_is_reused_unless_it_would_join_two_words(
    tokens: SmallTokens, written: str, closing: bytes, after: str, tails: list[bytes]
) -> None:
    gap = gap_in_script(tokens)
    assert gap.tails(gap.fill(ids(tokens, written), closing), ids(tokens, after)) == tails


def test_without_an_earlier_fill_no_closing_text_is_reused(tokens: SmallTokens) -> None:
    assert gap_in_script(tokens).tails(None, ids(tokens, "f(")) == []


def counted(name: bytes, size: int, asked: list[bytes]) -> Iterator[bytes]:
    for number in range(size):
        asked.append(name)
        yield name + str(number).encode()


def test_sources_take_turns_and_are_read_lazily() -> None:
    asked: list[bytes] = []
    turns = _in_turns(counted(b"a", 2, asked), counted(b"b", 3, asked), counted(b"c", 0, asked))
    assert asked == []
    assert next(turns) == b"a0"
    assert asked == [b"a"]
    assert list(islice(turns, 2)) == [b"b0", b"a1"]
    assert asked == [b"a", b"b", b"a"]
    assert list(turns) == [b"b1", b"b2"]


def test_a_source_may_have_two_turns_of_three() -> None:
    twice = iter([b"a0", b"a1", b"a2"])
    assert list(_in_turns(twice, twice, iter([b"b0", b"b1"]))) == [b"a0", b"a1", b"b0", b"a2", b"b1"]


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("f(", [""]),
        ('f("a', ['"', ""]),
        ('f("a\\', ['n"', '"', ""]),
        ("f(a /", ["**/", ""]),
        ("f(0x", ["0", ""]),
    ],
)
def test_the_grammar_completes_a_text_with_closed_strings_and_complete_tokens(
    tokens: SmallTokens, text: str, completed: list[str]
) -> None:
    asked: list[bytes] = []
    found = list(gap_in_script(tokens, asked).repairs(ids(tokens, text)))
    assert asked == [(text + one).encode() for one in completed]
    assert found == [one.encode() + closing for one in completed for closing in (b")", b"))", b")))")]


def test_a_gap_of_no_language_has_no_repairs(tokens: SmallTokens) -> None:
    gap = GapText(vocabulary_of(tokens), RegionRules(Region(0, 0), b""), None, lambda text: iter([b")"]))
    assert list(gap.repairs(ids(tokens, "f("))) == []


def test_the_grammar_is_asked_before_any_guess(tokens: SmallTokens) -> None:
    asked: list[bytes] = []
    gap = gap_in_script(tokens, asked)
    queue = Candidates(gap)
    closings = queue._closings(ids(tokens, "f(g"))
    guesses = gap.completions(ids(tokens, "f(g"))
    assert list(islice(closings, 2)) == [b")", next(guesses)]
    assert asked == [b"f(g"]
    assert list(islice(closings, 3)) == [b"))", b")))", next(guesses)]


@pytest.mark.parametrize("reads", [True, None])
def test_with_a_known_fill_repairs_and_the_reused_closing_text_come_before_guesses(
    tokens: SmallTokens, reads: bool | None
) -> None:
    gap = gap_in_script(tokens, reads=reads)
    queue = Candidates(gap, gap.fill(ids(tokens, "f(a"), b");"))
    first, *others = gap.completions(ids(tokens, "f(g"))
    assert list(queue._renewals(ids(tokens, "f(g"))) == [b")", b");", b"))", first, b")))", *others]


def test_with_a_known_fill_a_text_that_the_grammar_cannot_read_is_not_completed(tokens: SmallTokens) -> None:
    asked: list[bytes] = []
    gap = gap_in_script(tokens, asked, reads=False)
    queue = Candidates(gap, gap.fill(ids(tokens, "f(a"), b");"))
    assert list(queue._renewals(ids(tokens, "f(g"))) == []
    assert asked == []


def test_in_a_comment_that_continues_after_the_gap_no_closing_text_is_needed(tokens: SmallTokens) -> None:
    asked: list[bytes] = []
    gap = gap_in_script(tokens, asked, "/* a", " */ b()")
    assert next(Candidates(gap)._closings(ids(tokens, "f("))) == b""
    assert asked == []
