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
    queue = Candidates(seen, GapText(vocabulary_of(tokens), rules))
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
    queue = Candidates(seen, gap)
    queue.add_bare(lay_out(seen, {}, tokens.eog_id))
    found = [fill for fill in (queue.pop() for _ in range(8)) if fill is not None]
    assert (gap.prefix, b"") in [(tokens.decode_bytes(fill.tokens), fill.text) for fill in found]


def test_a_token_that_is_half_a_character_is_swapped(tokens: SmallTokens) -> None:
    seen = view(tokens, [[b"\x80", b"a"], *[[b"b", b"c"]] * 11])
    queue = queue_of(tokens, seen, RegionRules(Region(0, 0), b""))
    found = [queue.pop() for _ in range(4)]
    assert b"a" + b"b" * 11 in [fill.text for fill in found if fill is not None]


def test_a_fill_has_the_cost_of_the_cheapest_way_to_it(tokens: SmallTokens) -> None:
    known = view(tokens, [[b"a", b"b"]] * 4)
    ends = np.where(known.ids == known.ids[0, 1], tokens.eog_id, known.ids)
    # Two ways lead to the empty fill: the end token of the doubtful draft, at a high cost, or the fixed part of the
    # draft without a completion, at a low cost.
    queue = queue_of(tokens, GapView((), (None,) * 4, ends, known.logp - 2, budget=0), RegionRules(Region(0, 0), b""))
    first = queue.pop()
    assert first is not None
    assert first.text == b""


def test_tokens_of_every_rank_are_tried_at_a_fault(tokens: SmallTokens) -> None:
    queue = queue_of(tokens, view(tokens, [[b"a", b"b", b"c"]] * 12), RegionRules(Region(0, 0), b""))
    assert queue.pop() is not None
    queue.blame(0)
    tried = {fill.text[:1] for fill in iter(queue.pop, None)}
    assert tried >= {b"a", b"b", b"c"}


def test_a_text_is_tried_once_whatever_tokens_encode_it(tokens: SmallTokens) -> None:
    """After the line of a single-line region, swaps of tokens do not change the text, so they must not be tried."""
    letters = [b"a", b"b", b"c", b"d"]
    seen = view(tokens, [letters, [b"\n"] * 4, *[letters] * 10])
    queue = queue_of(tokens, seen, RegionRules(Region(0, 0, single_line=True), b""))
    found = []
    for fill in islice(iter(queue.pop, None), 200):
        found.append(fill.text)
        queue.blame(0)
    assert set(found) >= {b"a", b"b", b"c", b"d"}
    assert len(set(found)) == len(found)


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


def test_the_grammar_is_asked_before_any_guess_and_not_for_a_draft(tokens: SmallTokens) -> None:
    asked: list[bytes] = []
    gap = gap_in_script(tokens, asked)
    queue = Candidates(view(tokens, [[b"a", b"b"]]), gap)
    closings = queue._closings(ids(tokens, "f(g"), is_drafted=False)
    guesses = gap.completions(ids(tokens, "f(g"))
    assert list(islice(closings, 2)) == [b")", next(guesses)]
    assert asked == [b"f(g"]
    assert list(islice(closings, 3)) == [b"))", b")))", next(guesses)]
    asked.clear()
    list(queue._closings(ids(tokens, "f(g"), is_drafted=True))
    assert asked == []


@pytest.mark.parametrize("reads", [True, None])
def test_with_a_known_fill_repairs_and_the_reused_closing_text_come_before_guesses(
    tokens: SmallTokens, reads: bool | None
) -> None:
    gap = gap_in_script(tokens, reads=reads)
    queue = Candidates(view(tokens, [[b"a", b"b"]]), gap, gap.fill(ids(tokens, "f(a"), b");"))
    first, *others = gap.completions(ids(tokens, "f(g"))
    assert list(queue._renewals(ids(tokens, "f(g"))) == [b")", b");", b"))", first, b")))", *others]


def test_with_a_known_fill_a_text_that_the_grammar_cannot_read_is_not_completed(tokens: SmallTokens) -> None:
    asked: list[bytes] = []
    gap = gap_in_script(tokens, asked, reads=False)
    queue = Candidates(view(tokens, [[b"a", b"b"]]), gap, gap.fill(ids(tokens, "f(a"), b");"))
    assert list(queue._renewals(ids(tokens, "f(g"))) == []
    assert asked == []


def test_with_a_known_fill_no_token_is_swapped_at_a_fault(tokens: SmallTokens) -> None:
    gap = gap_in_script(tokens, reads=False)
    seen = view(tokens, [[b"a", b"b", b"c"]] * 12)
    draft = lay_out(seen, {}, tokens.eog_id)
    assert draft is not None
    for known, most in ((gap.fill(ids(tokens, "f(a"), b");"), 1), (None, 100)):
        queue = Candidates(seen, gap, known)
        queue.add(draft, base=0.0)
        tried = []
        for fill in islice(iter(queue.pop, None), most + 1):
            tried.append(fill.text)
            queue.blame(0)
        assert (b"b" + b"a" * 11 in tried) == (known is None)


def test_the_fixed_part_of_a_draft_can_be_a_fill(tokens: SmallTokens) -> None:
    gap = gap_in_script(tokens, reads=True)
    for last, text in ((tokens.eog_id, b"a"), (None, b"a)")):
        seen = replace(view(tokens, [[b"b"]] * 4), slots=(*ids(tokens, "a"), last, None, None))
        draft = lay_out(seen, {}, tokens.eog_id)
        assert draft is not None
        queue = Candidates(seen, gap, gap.fill(ids(tokens, "f(a"), b");"))
        queue.add_fixed(draft, base=0.0)
        fill = queue.pop()
        assert fill is not None
        assert fill.text == text


def test_in_a_comment_that_continues_after_the_gap_no_closing_text_is_needed(tokens: SmallTokens) -> None:
    asked: list[bytes] = []
    gap = gap_in_script(tokens, asked, "/* a", " */ b()")
    assert next(Candidates(view(tokens, [[b"a"]]), gap)._closings(ids(tokens, "f("), is_drafted=False)) == b""
    assert asked == []
