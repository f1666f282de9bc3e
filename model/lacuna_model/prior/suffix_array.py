"""A suffix array over tokenised documents: finds the occurrences of a run of tokens with two binary searches."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pydivsufsort import divsufsort  # type: ignore[import-untyped]  # it ships no types

# The longest run that is searched; longer ones add nothing.
MAX_MATCH = 32
# The most places used of a run that has more. The array is sorted by the following tokens, so an even sample over it is
# representative.
MAX_PLACES = 1024

Places = NDArray[np.int64]


def token_type(vocab_size: int) -> np.dtype[np.unsignedinteger]:
    """The narrowest type for a vocabulary and a separator; big-endian, so that bytes sort as the tokens do."""
    return np.dtype(">u2" if vocab_size <= 0xFFFF else ">u4")


def join(documents: Sequence[Sequence[int] | NDArray[np.unsignedinteger]], kind: np.dtype[np.unsignedinteger]) -> bytes:
    """Documents as one text, with a separator before each and at the end."""
    separator = np.full(1, np.iinfo(kind).max, dtype=kind)
    parts = [separator]
    for document in documents:
        parts += [np.asarray(document, dtype=kind), separator]
    # Without the dtype, concatenating returns native byte order.
    return np.concatenate(parts, dtype=kind).tobytes()


class SuffixArray:
    """All suffixes of a text of documents in order.

    ``data`` is the text that :func:`join` made; ``order`` its suffixes (token offsets, int32), sorted here where not
    given. No run that is searched holds a separator, so no match crosses the border of a document.
    """

    def __init__(self, data: bytes, kind: np.dtype[np.unsignedinteger], order: NDArray[np.int32] | None = None) -> None:
        self.data = data
        self.kind = kind
        self.tokens = np.frombuffer(data, dtype=kind)
        self.separator = int(np.iinfo(kind).max)
        self.order = self._sorted() if order is None else order
        # A memoryview yields plain integers, several times faster than an array does.
        self._view = self.order.view(np.uint8).data.cast("i")

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
        return np.flatnonzero(self.tokens == self.separator)

    def documents_of(self, places: Places) -> NDArray[np.int64]:
        """The numbers of the documents that contain the places."""
        return np.searchsorted(self.borders, places, side="right") - 1

    def find(self, run: bytes) -> tuple[int, int]:
        """The range of ``order`` whose suffixes begin with a run of tokens (as bytes)."""
        head = self._heads(len(run))
        first = bisect_left(self._view, run, key=head)
        return first, bisect_right(self._view, run, lo=first, key=head)

    def goes_on(self, run: bytes) -> bool:
        """Whether a run of tokens (as bytes) occurs with a token behind it; in one search."""
        head = self._heads(len(run))
        first = bisect_left(self._view, run, key=head)
        if first == len(self._view) or head(self._view[first]) != run:
            return False
        # The separator is the largest token, so a place with another token behind it comes first.
        return int(self.tokens[self._view[first] + len(run) // self.kind.itemsize]) != self.separator

    def _heads(self, size: int) -> Callable[[int], bytes]:
        """What reads the first ``size`` bytes of a suffix."""
        data, width = self.data, self.kind.itemsize
        return lambda place: data[place * width : place * width + size]

    def places(self, stretch: tuple[int, int]) -> Places:
        """The offsets of the suffixes in a range; of a long range, an even sample."""
        first, last = stretch
        step = max(1, -(-(last - first) // MAX_PLACES))
        return self.order[first:last:step].astype(np.int64)
