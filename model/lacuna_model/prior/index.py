"""The index of a project's tokens: unchanged files, indexed once, and beside them the documents that changed."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from lacuna_model.prior.suffix_array import Places, SuffixArray, join, token_type

Tokens = NDArray[np.unsignedinteger]
Name = TypeVar("Name", str, bytes)


class IndexedDocuments(Generic[Name]):
    """A suffix array over documents and their names."""

    def __init__(self, array: SuffixArray, names: Sequence[Name]) -> None:
        self.array = array
        self.names: Sequence[Name] = names

    @classmethod
    def index(
        cls, documents: Mapping[Name, Sequence[int] | Tokens], kind: np.dtype[np.unsignedinteger]
    ) -> "IndexedDocuments[Name]":
        """Build the suffix array of documents given by name."""
        return cls(SuffixArray(join(list(documents.values()), kind), kind), tuple(documents))

    def tokens(self) -> Iterator[tuple[Name, Tokens]]:
        """Yield the tokens of every document by name."""
        borders = self.array.borders
        for name, first, last in zip(self.names, borders[:-1] + 1, borders[1:], strict=True):
            yield name, self.array.tokens[first:last]

    @cached_property
    def numbers(self) -> Mapping[Name, int]:
        """The number of every document by its name."""
        return {name: number for number, name in enumerate(self.names)}


@dataclass(frozen=True, slots=True)
class Segment:
    """Documents, of which some may be hidden: ``counts`` has a flag for each, True if it counts; None: all count."""

    documents: IndexedDocuments[Any]
    counts: NDArray[np.bool_] | None = None

    @property
    def array(self) -> SuffixArray:
        """The suffix array of the documents."""
        return self.documents.array

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
        return places if self.counts is None else places[self.counts[self.array.documents_of(places)]]


@dataclass(slots=True)
class Index:
    """The documents of one workspace by name, as tokens.

    ``rest`` are the unchanged files, indexed once in the background. Documents that changed since are few; they are
    indexed again on the first request after a change. Safe to use from several threads: readers keep the
    segments that they were given.
    """

    kind: np.dtype[np.unsignedinteger]
    rest: IndexedDocuments[str] | None = None
    _changed: dict[str, Tokens] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)
    _recent: IndexedDocuments[str] | None = None
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def for_vocabulary(cls, vocab_size: int) -> "Index":
        """An empty index."""
        return cls(token_type(vocab_size))

    @property
    def num_changed(self) -> int:
        """Tokens of the changed documents."""
        return sum(map(len, self._changed.values()))

    @property
    def names(self) -> set[str]:
        """The names of all documents."""
        with self._lock:
            return (set(self.rest.names if self.rest is not None else ()) - self._gone) | self._changed.keys()

    def update(self, name: str, tokens: Sequence[int] | Tokens) -> None:
        """Add a document, or replace its tokens."""
        with self._lock:
            self._changed[name] = np.asarray(tokens, dtype=self.kind)
            self._gone.add(name)
            self._recent = None

    def remove(self, name: str) -> None:
        """Remove a document."""
        with self._lock:
            self._changed.pop(name, None)
            self._gone.add(name)
            self._recent = None

    def replace_all(self, rest: IndexedDocuments[str]) -> None:
        """Replace all documents: ``rest`` are the files as they are."""
        with self._lock:
            self._gone, self._changed = set(), {}
            self.rest, self._recent = rest, None

    def segments(self, without: str = "") -> list[Segment]:
        """All segments of the current state, without the document ``without``."""
        with self._lock:
            if self._recent is None and self._changed:
                self._recent = IndexedDocuments.index(self._changed, self.kind)
            found = [] if self.rest is None else [Segment.of(self.rest, self._gone | {without})]
            return found if self._recent is None else [*found, Segment.of(self._recent, {without})]
