import random
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lacuna_model.core.pieces import MOST_BYTES, cut, nearest_first
from lacuna_model.prior import index
from lacuna_model.prior.index import (
    BYTES_AT_ONCE,
    MAX_MATCH,
    MAX_PLACES,
    Index,
    IndexedDocuments,
    Match,
    PiecewiseIndex,
    Segment,
    longest_match,
    token_type,
)
from lacuna_model.tokenizer import Tokenizer

NAMES = st.sampled_from("abcde")
TOKENS = st.lists(st.integers(0, 2), max_size=8)


class Edits(RuleBasedStateMachine):
    """After any sequence of edits an index gives the answers of one block of all documents."""

    @initialize(recent=st.sampled_from([0, 4, 12, 1000]), most=st.sampled_from([8, 20, 1000]))
    def begin(self, recent: int, most: int) -> None:
        self.index = Index[str](100, recent, most)
        self.files: dict[str, list[int]] = {}

    @rule(changes=st.dictionaries(NAMES, st.none() | TOKENS))
    def update(self, changes: dict[str, list[int] | None]) -> None:
        self.index.update(changes)
        kept = {name: tokens for name, tokens in self.files.items() if name not in changes}
        self.files = kept | {name: tokens for name, tokens in changes.items() if tokens is not None}

    @rule()
    def merge(self) -> None:
        self.index.merge()

    @invariant()
    def answers_as_one_block(self) -> None:
        assert self.index.names == self.files.keys()
        for without in ((), ("a",)):
            fresh = [segment(self.files, without, 100)]
            for context in ([0], [1, 2], [2, 0, 1], [1, 1, 0, 2]):
                got, wanted = (longest_match(each, context) for each in (self.index.segments(without), fresh))
                assert seen(got) == seen(wanted)


Edits.TestCase.settings = settings(max_examples=20, stateful_step_count=10, deadline=None)
TestEdits = Edits.TestCase


VOCABULARIES = [49_152, 151_936]  # tokens of 16 and of 32 bits
RUNS = st.lists(st.integers(0, 3), max_size=14)
FILES = st.dictionaries(st.sampled_from("abcdef"), RUNS, max_size=4)


def segment(files: dict[str, list[int]], without: Collection[str] = (), vocab_size: int = 49_152) -> Segment:
    return Segment.of(IndexedDocuments.index(files, token_type(vocab_size)), without)


def expected(files: list[list[int]], context: list[int]) -> tuple[int, Counter[int]]:
    """The infinity-gram by definition: the longest end of the context that some token follows, and those tokens."""
    for length in range(min(len(context), MAX_MATCH), 0, -1):
        run = context[-length:]
        found = [f[i + length] for f in files for i in range(len(f) - length) if f[i : i + length] == run]
        if found:
            return length, Counter(found)
    return 0, Counter()


def seen(match: Match | None) -> tuple[int, Counter[int]]:
    return (match.length, Counter(match.tokens().tolist())) if match else (0, Counter())


@given(FILES, FILES, st.sets(st.sampled_from("abcdef")), RUNS, st.sampled_from(VOCABULARIES))
def test_the_longest_match_over_all_segments_is_found(
    rest: dict[str, list[int]], recent: dict[str, list[int]], hidden: set[str], context: list[int], vocab_size: int
) -> None:
    segments = [segment(rest, hidden, vocab_size), segment(recent, (), vocab_size)]
    files = [*(tokens for name, tokens in rest.items() if name not in hidden), *recent.values()]
    assert seen(longest_match(segments, context)) == expected(files, context)


def test_of_very_many_places_a_sample_is_taken() -> None:
    match = longest_match([segment({"a": [7] * (3 * MAX_PLACES)})], [7])
    assert match is not None
    assert MAX_PLACES - 1 <= len(match.tokens()) <= MAX_PLACES


@given(FILES, RUNS, RUNS)
def test_following_equals_matching_again(files: dict[str, list[int]], context: list[int], more: list[int]) -> None:
    segments = [segment(files)]
    match = longest_match(segments, context)
    for token in more:
        context = [*context, token]
        match = match and match.follow(token)
        if match is None:
            return
        assert seen(match) == seen(longest_match(segments, context))


FILES = IndexedDocuments.index({"a.py": [1, 2, 3], "b.py": []}, token_type(100))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "some.index"
    index.save(path, FILES, {"a.py": (9, 5)}, "tokenizer")
    return path


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_index_or_that_of_another_tokenizer_is_none(file: Path, damage: str) -> None:
    assert index.load(file, "another") is None
    found = index.load(file, "tokenizer")
    assert found is not None
    assert {name: own.tolist() for name, own in found[0].tokens()} == {"a.py": [1, 2, 3], "b.py": []}
    data = bytearray(file.read_bytes())
    if damage == "flipped":
        data[-3] ^= 1
    damaged = {"cut": data[:-1], "flipped": data, "empty": b""}[damage]
    file.write_bytes(damaged)
    assert index.load(file, "tokenizer") is None


class Counting(Tokenizer):
    """A tokenizer of bytes that counts those it encodes."""

    def __init__(self) -> None:
        self.vocab_size, self.num_bytes = 256, 0

    def encode(self, text: str) -> list[int]:
        self.num_bytes += len(text.encode())
        return list(text.encode())


def lines(count: int, seed: int = 0) -> bytes:
    rng = random.Random(seed)
    words = ["alpha", "beta", "gamma", "delta", "if", "return", "x", "value", "(", ")"]
    return b"".join(
        (" " * rng.choice((0, 4, 8)) + " ".join(rng.choices(words, k=rng.randint(0, 9))) + f" {n}\n").encode()
        for n in range(count)
    )


def indexed(text: bytes, at: int) -> tuple[PiecewiseIndex, Counting]:
    """A document with its index, all of it, and a gap at an offset."""
    counting = Counting()
    opened = PiecewiseIndex(counting)
    for _ in opened.read([text[:at], text[at:]]):
        pass
    return opened, counting


@pytest.mark.parametrize("text", [b"", b"x", b"\n" * 9000, b"x" * 40_000, "ä\n".encode() * 9000, lines(3000)])
def test_the_pieces_are_the_text(text: bytes) -> None:
    pieces = list(cut(text))
    assert b"".join(pieces) == text
    assert all(0 < len(piece) <= MOST_BYTES for piece in pieces)


def test_the_pieces_next_to_a_gap_come_first() -> None:
    text = lines(5000)
    pieces = nearest_first([text[:90_000], text[90_000:]])
    spans = [(text.index(piece), text.index(piece) + len(piece)) for piece in pieces]
    distances = [min(abs(begin - 90_000), abs(end - 90_000)) for begin, end in spans]
    assert distances == sorted(distances)


def test_a_request_encodes_a_bounded_part_of_a_new_document_and_the_next_ones_the_rest() -> None:
    text, counting = lines(20_000), Counting()
    opened, at = PiecewiseIndex(counting), 300_000
    for number in range(1, 30):
        opened.segments([text[:at], text[at:]])
        assert counting.num_bytes <= number * (BYTES_AT_ONCE + MOST_BYTES)
    assert counting.num_bytes >= len(text) * 0.99


def test_what_a_gap_has_cut_is_not_encoded_again_when_the_gap_is_elsewhere() -> None:
    text = lines(4000)
    opened, counting = indexed(text, 0)
    begun, pieces, new = counting.num_bytes, set(cut(text)), 0
    for at in range(20_000, 60_000, 4000):
        opened.segments([text[:at], text[at:]])
        new += sum(map(len, {*cut(text[:at]), *cut(text[at:])} - pieces))
    assert counting.num_bytes - begun == new


def test_a_change_sorts_no_first_block_that_is_larger() -> None:
    opened = Index[str](100, 1000)
    opened.update({name: [1] * 100 for name in "abc"})
    (first,) = opened.segments()
    for name in ("d", "e"):
        opened.update({name: [2] * 10})
        opened.update({})
    kept, recent = opened.segments()
    assert kept.documents is first.documents
    assert set(recent.documents.names) == {"d", "e"}


def test_the_index_finds_what_stands_in_the_text_and_nothing_that_is_gone() -> None:
    text, rng = lines(4000), random.Random(3)
    opened, _ = indexed(text, 5000)
    gone = list[bytes]()
    for step in range(30):
        place, size = rng.randrange(len(text)), rng.choice((0, 3, 4000))
        gone += [line for line in text[place : place + size].split(b"\n")[1:-1][:1] if len(line) > 8]
        text = text[:place] + f"new {step} line\n".encode() + text[place + size :]
        at = rng.randrange(len(text))
        segments = opened.segments([text[:at], text[at:]])
        written = longest_match(segments, list(f"new {step} lin".encode()))
        assert written is not None
        assert written.length == len(f"new {step} lin")
    for line in (line for line in gone if line not in text):
        match = longest_match(segments, list(line))
        assert match is None or match.length < len(line)
