"""The queue of one gap: what no parse need look at takes a bounded time."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from lacuna_model.constraint import GapView
from lacuna_model.params import Region
from lacuna_model.syntax.candidates import MAX_REFUSED, Candidates, GapText
from lacuna_model.syntax.draft import lay_out
from lacuna_model.syntax.region_rules import RegionRules
from lacuna_model.syntax.vocabulary import vocabulary_of

from .conftest import SmallTokens
from .drive import between, require


class Refusing(RegionRules):
    """Rules that nothing keeps."""

    def __init__(self) -> None:
        super().__init__(Region(0, 0), b"")
        self.asked = 0

    def accepts(self, fill: bytes) -> bool:
        """Never."""
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


def test_a_search_among_what_is_refused_ends(tokens: SmallTokens) -> None:
    rules = Refusing()
    letters = [bytes([letter]) for letter in b"abcdefgh"]
    assert queue_of(tokens, view(tokens, [letters] * 12), rules).pop() is None
    assert 0 < rules.asked <= MAX_REFUSED


def test_where_there_is_no_room_no_completion_is_looked_for(
    tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def completions(_gap: GapText, prefix: tuple[int, ...], *, is_drafted: bool) -> Iterator[bytes]:
        asked.append(len(prefix))
        return iter(())

    monkeypatch.setattr(GapText, "completions", completions)
    for written in (2, 3):
        seen = view(tokens, [[b"a", b"b"]] * 3)
        queue = queue_of(tokens, replace(seen, slots=(5,) * written + (None,) * (3 - written)), Refusing())
        while queue._heap:
            queue.pop()
    assert asked == [2]


def test_a_search_whose_time_is_up_looks_at_one_more_fill(tokens: SmallTokens) -> None:
    rules = Refusing()
    letters = [bytes([letter]) for letter in b"abcdefgh"]
    assert queue_of(tokens, view(tokens, [letters] * 12), rules).pop(lambda: True) is None
    assert rules.asked == 1


def test_the_prefix_alone_may_do(tokens: SmallTokens) -> None:
    gap = GapText(
        vocabulary_of(tokens), RegionRules(Region(0, 0), b""), lambda: between("x = (", "y = 1", require("python"))[1]
    )
    gap.prefix = b"\n"
    seen = GapView((), (None,) * 8, budget=0, prefix=gap.prefix)
    queue = Candidates(seen, gap)
    queue.add_bare(lay_out(seen, {}, tokens.eog_id))
    found = [queue.pop() for _ in range(8)]
    assert gap.prefix in [fill.text for fill in found if fill is not None]


def test_half_a_character_is_changed_where_it_stands(tokens: SmallTokens) -> None:
    seen = view(tokens, [[b"\x80", b"a"], *[[b"b", b"c"]] * 11])
    queue = queue_of(tokens, seen, RegionRules(Region(0, 0), b""))
    found = [queue.pop() for _ in range(4)]
    assert b"a" + b"b" * 11 in [fill.text for fill in found if fill is not None]


def test_the_cheaper_way_to_a_fill_counts(tokens: SmallTokens) -> None:
    known = view(tokens, [[b"a", b"b"]] * 4)
    ends = np.where(known.ids == known.ids[0, 1], tokens.eog_id, known.ids)
    # The draft may end at once, which its doubt makes costly; what is fixed needs no completion, which is cheap.
    queue = queue_of(tokens, GapView((), (None,) * 4, ends, known.logp - 2, budget=0), RegionRules(Region(0, 0), b""))
    first = queue.pop()
    assert first is not None
    assert first.text == b""


def test_tokens_of_every_rank_are_tried_where_a_fault_is(tokens: SmallTokens) -> None:
    queue = queue_of(tokens, view(tokens, [[b"a", b"b", b"c"]] * 12), RegionRules(Region(0, 0), b""))
    assert queue.pop() is not None
    queue.blame(0)
    tried = {fill.text[:1] for fill in iter(queue.pop, None)}
    assert tried >= {b"a", b"b", b"c"}


def gap_in_script(tokens: SmallTokens, asked: list[bytes] | None = None) -> GapText:
    """A gap between two statements, with a grammar that completes with parentheses and notes for what."""

    def repair(text: bytes) -> Iterator[bytes]:
        if asked is not None:
            asked.append(text)
        yield from (b")", b"))", b")))")

    closer = between("a();\n", "\nb();\n", require("javascript"))[1]
    return GapText(vocabulary_of(tokens), RegionRules(Region(0, 0), b""), lambda: closer, repair)


def ids(tokens: SmallTokens, text: str) -> tuple[int, ...]:
    return tuple(tokens.encode(text))


@pytest.mark.parametrize(
    ("written", "closing", "after", "tails"),
    [
        ("f(", b"x)", "f(g", []),  # gx is another word than g
        ("f(", b"x)", "f($", []),
        ("f(", b"x)", "f(1", []),
        ("f(", b"x)", "f(g + ", [b"x)"]),
        ("f(g", b")", "f(h", [b")"]),
        ("f(g", b")", "f(g(", []),  # more is open
        ("f(g", b"", "f(h", []),
    ],
)
def test_what_completed_a_fill_serves_again_unless_words_would_become_one(
    tokens: SmallTokens, written: str, closing: bytes, after: str, tails: list[bytes]
) -> None:
    gap = gap_in_script(tokens)
    assert gap.tails(gap.fill(ids(tokens, written), closing), ids(tokens, after)) == tails


def test_no_fill_before_no_tail(tokens: SmallTokens) -> None:
    assert gap_in_script(tokens).tails(None, ids(tokens, "f(")) == []


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
def test_the_grammar_is_asked_with_strings_closed_and_tokens_whole(
    tokens: SmallTokens, text: str, completed: list[str]
) -> None:
    asked: list[bytes] = []
    expected = [one.encode() + closing for one in completed for closing in (b")", b"))", b")))")]
    found = islice(gap_in_script(tokens, asked).completions(ids(tokens, text)), len(expected))
    assert list(found) == expected
    assert asked == [(text + one).encode() for one in completed]


def test_a_gap_of_no_language_has_no_repairs(tokens: SmallTokens) -> None:
    gap = GapText(vocabulary_of(tokens), RegionRules(Region(0, 0), b""), None, lambda text: iter([b")"]))
    assert list(gap.completions(ids(tokens, "f("))) == [b""]


def test_the_grammar_is_asked_before_any_guess_and_of_no_mere_draft(tokens: SmallTokens) -> None:
    asked: list[bytes] = []
    gap = gap_in_script(tokens, asked)
    found = gap.completions(ids(tokens, "f(g"))
    assert asked == []
    assert list(islice(found, 3)) == [b")", b"))", b")))"]
    assert asked == [b"f(g"]
    guesses = list(found)
    asked.clear()
    assert list(gap.completions(ids(tokens, "f(g"), is_drafted=True)) == guesses
    assert asked == []


def test_what_the_rules_ask_for_comes_first_and_the_rest_of_the_prefix_before_all(tokens: SmallTokens) -> None:
    asked: list[bytes] = []
    gap = gap_in_script(tokens, asked)
    gap.rules, gap.prefix = RegionRules(Region(0, 0, must_contain=("g",)), b""), b"f("
    found = list(islice(gap.completions(ids(tokens, "f")), 3))
    assert found == [b"(g", b"((g)", b"()"]
    assert asked == [b"f("]
