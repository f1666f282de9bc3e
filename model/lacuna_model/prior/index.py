"""The index of a project's tokens: suffix arrays over its files, and the longest match of a text in them.

The longest match (infini-gram, arXiv 2401.17377) of the text before a slot proposes the tokens that follow. The index
of a workspace's files is kept in the user's cache. In that of a document which is being edited, what a key costs grows
with what it changed, and not with the file: it is indexed by pieces, each encoded once, and sorted with others.
"""

import hashlib
import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydivsufsort import divsufsort  # type: ignore[import-untyped]  # it ships no types

from lacuna_model.core.pieces import nearest_first
from lacuna_model.files.opening import Mark, absolute
from lacuna_model.hub import atomic, models
from lacuna_model.tokenizer import Tokenizer

# The longest run that is searched; longer ones add nothing.
MAX_MATCH = 32
# The most places used of a run that has more. The array is sorted by the following tokens, so an even sample over it is
# representative.
MAX_PLACES = 1024

Places = NDArray[np.int64]
Tokens = NDArray[np.unsignedinteger]
Name = TypeVar("Name", str, bytes)


def token_type(vocab_size: int) -> np.dtype[np.unsignedinteger]:
    """The narrowest type for a vocabulary and a separator; big-endian, so that bytes sort as the tokens do."""
    return np.dtype(">u2" if vocab_size <= 0xFFFF else ">u4")


class IndexedDocuments(Generic[Name]):
    """Documents by name as one text, with a separator before each and at the end, and all suffixes of it in order.

    ``data`` is the text; ``order`` its suffixes (token offsets, int32), sorted here where not given. No run that is
    searched holds a separator, so no match crosses the border of a document.
    """

    def __init__(
        self,
        data: bytes,
        kind: np.dtype[np.unsignedinteger],
        names: Sequence[Name],
        order: NDArray[np.int32] | None = None,
    ) -> None:
        self.data = data
        self.kind = kind
        self.names: Sequence[Name] = names
        self.text = np.frombuffer(data, dtype=kind)
        self.separator = int(np.iinfo(kind).max)
        self.order = self._sorted() if order is None else order
        # A memoryview yields plain integers, several times faster than an array does.
        self._view = self.order.view(np.uint8).data.cast("i")

    @classmethod
    def index(
        cls, documents: Mapping[Name, Sequence[int] | Tokens], kind: np.dtype[np.unsignedinteger]
    ) -> "IndexedDocuments[Name]":
        """Index documents given by name."""
        separator = np.full(1, np.iinfo(kind).max, dtype=kind)
        parts = [separator]
        for document in documents.values():
            parts += [np.asarray(document, dtype=kind), separator]
        # Without the dtype, concatenating returns native byte order.
        return cls(np.concatenate(parts, dtype=kind).tobytes(), kind, tuple(documents))

    def _sorted(self) -> NDArray[np.int32]:
        # The library sorts bytes; only the offsets of a token's first byte are suffixes.
        width = self.kind.itemsize
        order = divsufsort(self.data)
        order = order[order % width == 0]
        order //= width
        return np.ascontiguousarray(order)

    @cached_property
    def borders(self) -> NDArray[np.int64]:
        """Offsets of the separators: document i lies between the borders i and i + 1."""
        return np.flatnonzero(self.text == self.separator)

    @cached_property
    def numbers(self) -> Mapping[Name, int]:
        """The number of every document by its name."""
        return {name: number for number, name in enumerate(self.names)}

    def tokens(self) -> Iterator[tuple[Name, Tokens]]:
        """Yield the tokens of every document by name."""
        for name, first, last in zip(self.names, self.borders[:-1] + 1, self.borders[1:], strict=True):
            yield name, self.text[first:last]

    def places(self, run: bytes) -> Places:
        """The offsets of a run of tokens (as bytes); of very many, an even sample."""
        data, width, size = self.data, self.kind.itemsize, len(run)

        def head(place: int) -> bytes:
            return data[place * width : place * width + size]

        first = bisect_left(self._view, run, key=head)
        last = bisect_right(self._view, run, lo=first, key=head)
        step = max(1, -(-(last - first) // MAX_PLACES))
        return self.order[first:last:step].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Segment:
    """Documents, of which some may be hidden: ``counts`` has a flag for each, True if it counts; None: all count."""

    documents: IndexedDocuments[Any]
    counts: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, documents: IndexedDocuments[Name], without: Collection[Name]) -> "Segment":
        """The documents except those named in ``without``."""
        hidden = [documents.numbers[name] for name in without if name in documents.numbers]
        if not hidden:
            return cls(documents)
        counts = np.ones(len(documents.names), dtype=bool)
        counts[hidden] = False
        return cls(documents, counts)

    def counted(self, places: Places) -> Places:
        """The places that lie in documents that count."""
        if self.counts is None:
            return places
        return places[self.counts[np.searchsorted(self.documents.borders, places, side="right") - 1]]


class Index(Generic[Name]):
    """Documents by name, as tokens, in blocks that stay sorted; what of a block is gone is hidden.

    Documents that change are sorted again with the last block, if that is not the first and has at most ``most_recent``
    tokens, with blocks that are no larger than what is sorted, up to ``most_sorted`` tokens, and with what is left of
    those that have lost most. One thread makes changes; others may read, and keep the segments that they were given.
    """

    def __init__(self, vocab_size: int, most_recent: int, most_sorted: float = math.inf) -> None:
        self.kind = token_type(vocab_size)
        self._most_recent, self._most_sorted = most_recent, most_sorted
        self._blocks: tuple[tuple[IndexedDocuments[Name], frozenset[Name]], ...] = ()  # each with what is hidden

    @property
    def names(self) -> set[Name]:
        """The names of all documents."""
        return {name for block, hidden in self._blocks for name in block.numbers.keys() - hidden}

    def show(self, names: Collection[Name]) -> None:
        """Show again those of some names that a block still has hidden: with the tokens that they had."""
        self._blocks = tuple((block, hidden.difference(names)) for block, hidden in self._blocks)

    def update(self, changes: Mapping[Name, Sequence[int] | Tokens | None]) -> None:
        """Add documents, or replace their tokens; None removes one."""
        if not changes:
            return
        new: dict[Name, Sequence[int] | Tokens] = {name: own for name, own in changes.items() if own is not None}
        kept: list[tuple[IndexedDocuments[Name], frozenset[Name]]] = []
        size = sum(map(len, new.values()))
        for block, hidden in reversed(self._blocks):
            hidden |= changes.keys() & block.numbers.keys()
            recent = 0 if block is self._blocks[0][0] else self._most_recent
            is_small = len(block.text) <= min(max(size, recent), self._most_sorted - size)
            if 2 * len(hidden) > len(block.names) or (is_small and not kept):
                rest = {name: own for name, own in block.tokens() if name not in hidden}
                size, new = size + sum(map(len, rest.values())), {**rest, **new}
            else:
                kept.append((block, hidden))
        kept.reverse()
        if new:
            kept.append((IndexedDocuments.index(new, self.kind), frozenset()))
        self._blocks = tuple(kept)

    def replace_all(self, documents: IndexedDocuments[Name]) -> None:
        """Replace all documents."""
        self._blocks = ((documents, frozenset()),)

    def merge(self) -> IndexedDocuments[Name]:
        """Sort all documents into one block."""
        if len(self._blocks) == 1 and not self._blocks[0][1]:
            return self._blocks[0][0]
        parts = ((name, own) for block, hidden in self._blocks for name, own in block.tokens() if name not in hidden)
        merged = IndexedDocuments.index(dict(parts), self.kind)
        self.replace_all(merged)
        return merged

    def segments(self, without: Collection[Name] = ()) -> list[Segment]:
        """All segments of the current state, without some documents."""
        return [Segment.of(block, hidden.union(without)) for block, hidden in self._blocks]


# Bytes that are encoded at once: some 20 ms. Of a document that has more, those nearest to the gaps come first.
BYTES_AT_ONCE = 1 << 15
# Tokens that are sorted anew at each key, at most: 1 ms.
MOST_RECENT = 8192
# Tokens of a block, at most: to sort them takes 10 ms.
MOST_SORTED = 1 << 16


class PiecewiseIndex:
    """The index of one document; ``texts`` are those between its gaps."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._index = Index[bytes](tokenizer.vocab_size, MOST_RECENT, MOST_SORTED)

    def segments(self, texts: Sequence[bytes]) -> list[Segment]:
        """The segments of what is indexed so far, after one more part of what is not."""
        self._take(nearest_first(texts))
        return self._index.segments()

    def read(self, texts: Sequence[bytes]) -> Iterator[None]:
        """Index the whole document, and pause after each part."""
        pieces = nearest_first(texts)
        while self._take(pieces):
            yield

    def _take(self, pieces: Sequence[bytes]) -> bool:
        """Forget what is not among some pieces, and index some that are new; returns whether there were any."""
        self._index.show(pieces)
        known, size = self._index.names, 0
        changes: dict[bytes, list[int] | None] = dict.fromkeys(known.difference(pieces))
        for piece in pieces:
            if piece not in known and size < BYTES_AT_ONCE:
                changes[piece] = self._tokenizer.encode(piece.decode(errors="ignore"))
                size += len(piece)
        self._index.update(changes)
        return size > 0


@dataclass(frozen=True, slots=True)
class Match:
    """The places where the tokens before a slot occur in the project, as offsets of the token that follows them.

    ``length`` tokens agree; no longer match exists.
    """

    length: int
    found: tuple[tuple[Segment, Places], ...]

    def tokens(self) -> NDArray[np.int64]:
        """The token in the slot at every place (of very many, a sample)."""
        return np.concatenate([segment.documents.text[places].astype(np.int64) for segment, places in self.found])

    def likeliest(self) -> tuple[int, float]:
        """The most frequent token of the slot, and its share of all."""
        ids, counts = np.unique(self.tokens(), return_counts=True)
        best = int(counts.argmax())
        return int(ids[best]), float(counts[best] / counts.sum())

    def follow(self, token: int) -> "Match | None":
        """The match of the next slot, given the token in this one; None where no place has it.

        A followed match is again the longest: a longer one would have been longer here too.
        """
        found = []
        for segment, places in self.found:
            kept = places[segment.documents.text[places] == token] + 1
            kept = kept[segment.documents.text[kept] != segment.documents.separator]
            if len(kept):
                found.append((segment, kept))
        return Match(min(self.length + 1, MAX_MATCH), tuple(found)) if found else None


def longest_match(segments: Sequence[Segment], context: Sequence[int]) -> Match | None:
    """The longest end of ``context`` that occurs in the project followed by a token."""
    best = 0
    found: list[tuple[Segment, Places]] = []
    for segment in segments:
        length, places = _longest_in(segment, context[-MAX_MATCH:], best)
        if length > best:
            best, found = length, []
        if length:
            found.append((segment, places))
    return Match(best, tuple(found)) if best else None


def _longest_in(segment: Segment, context: Sequence[int], at_least: int) -> tuple[int, Places]:
    """Length and places of the longest match in one segment; 0 and none where it is shorter than ``at_least``."""
    documents = segment.documents
    run = np.asarray(context, dtype=documents.kind).tobytes()
    width = documents.kind.itemsize

    def places(length: int) -> Places:
        slots = documents.places(run[-length * width :]) + length
        return segment.counted(slots[documents.text[slots] != documents.separator])

    length = max(at_least, 1)
    found = places(length) if len(context) >= length else np.zeros(0, dtype=np.int64)
    if not len(found):
        return 0, found
    # If a run does not occur, no longer one does. Few are much longer than what other segments have.
    step = 1
    while step:
        longer = places(length + step) if length + step <= len(context) else found[:0]
        if len(longer):
            length, found, step = length + step, longer, 2 * step
        else:
            step //= 2
    return length, found


SUFFIX = ".index"
MAX_KEPT = 40
# Indexes hold texts of the user's, so those that were not used for so long are removed.
MAX_UNUSED_S = 60 * 24 * 3600


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tokenizer: str
    kind: str
    data: bytes
    order: bytes
    names: list[str]
    marks: dict[str, Mark]


def location(root: Path, fingerprint: str) -> Path:
    """The path of a workspace's index for one tokenizer."""
    digest = hashlib.sha256(f"{absolute(root)} {fingerprint}".encode()).hexdigest()
    return models.cache_dir() / "workspaces" / f"{digest[:24]}{SUFFIX}"


def save(file: Path, documents: IndexedDocuments[str], marks: dict[str, Mark], fingerprint: str) -> None:
    """Write an index, readable by its owner only, since it holds the text of the files, if that is possible.

    ``marks`` are those of the files when they were read.
    """
    order = documents.order.astype("<i4", copy=False).tobytes()
    kept = _Kept(fingerprint, documents.kind.str, documents.data, order, list(documents.names), marks)
    body = msgspec.msgpack.encode(kept)

    def write(stream: BinaryIO) -> None:
        stream.write(hashlib.sha256(body).digest())
        stream.write(body)

    atomic.keep(file, f"*{SUFFIX}", write, private=True, most=MAX_KEPT, max_age_s=MAX_UNUSED_S)


def load(file: Path, fingerprint: str) -> tuple[IndexedDocuments[str], dict[str, Mark]] | None:
    """The index in a file, and the marks of the files in it.

    None where there is none, it is damaged, or it belongs to another tokenizer or version.
    """
    try:
        with atomic.kept(file) as stream:
            digest, body = stream.read(hashlib.sha256().digest_size), stream.read()
        if hashlib.sha256(body).digest() != digest:
            return None
        kept = msgspec.msgpack.decode(body, type=_Kept)
    except (OSError, msgspec.MsgspecError):
        return None
    if kept.tokenizer != fingerprint:
        return None
    order = np.frombuffer(kept.order, dtype="<i4").astype(np.int32, copy=False)
    return IndexedDocuments(kept.data, np.dtype(kept.kind), kept.names, order), kept.marks
