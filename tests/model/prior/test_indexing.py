import random
from pathlib import Path

import pytest

from lacuna_model.core.pieces import MOST_BYTES, cut, nearest_first
from lacuna_model.prior import indexing
from lacuna_model.prior.index import IndexedDocuments, longest_match, token_type
from lacuna_model.prior.indexing import BYTES_AT_ONCE, PiecewiseIndex
from lacuna_model.tokenizer import Tokenizer

FILES = IndexedDocuments.index({"a.py": [1, 2, 3], "b.py": []}, token_type(100))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "some.index"
    indexing.save(path, FILES, {"a.py": (9, 5)}, "tokenizer")
    return path


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_index_or_that_of_another_tokenizer_is_none(file: Path, damage: str) -> None:
    assert indexing.load(file, "another") is None
    found = indexing.load(file, "tokenizer")
    assert found is not None
    assert {name: own.tolist() for name, own in found[0].tokens()} == {"a.py": [1, 2, 3], "b.py": []}
    data = bytearray(file.read_bytes())
    if damage == "flipped":
        data[-3] ^= 1
    damaged = {"cut": data[:-1], "flipped": data, "empty": b""}[damage]
    file.write_bytes(damaged)
    assert indexing.load(file, "tokenizer") is None


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
