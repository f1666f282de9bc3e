"""Finds exact and near duplicates: by a hash of the words, and by MinHash over shingles of tokens."""

import hashlib
import re
import zlib
from dataclasses import dataclass

from datasketch import LeanMinHash, MinHash, MinHashLSH  # type: ignore[import-untyped]  # ships no type information

_WORD = re.compile(r"\w+|[^\w\s]")
_SHINGLE = 5
_PERMUTATIONS = 64
_EMPTY = MinHash(num_perm=_PERMUTATIONS, hashfunc=zlib.crc32)


@dataclass(frozen=True, slots=True)
class Sketch:
    """The identity of a text: the digest of its words, and a MinHash of its shingles."""

    digest: bytes
    shingles: LeanMinHash


class Duplicates:
    """Stores the sketches of accepted documents and recognises copies of them."""

    def __init__(self, threshold: float = 0.8) -> None:
        self._exact: set[bytes] = set()
        self._near = MinHashLSH(threshold=threshold, num_perm=_PERMUTATIONS)
        self._threshold = threshold
        self._accepted: dict[int, LeanMinHash] = {}

    def reason(self, text: Sketch) -> str | None:
        """Accepts a new text and returns None, or returns how it repeats an accepted text."""
        if text.digest in self._exact:
            return "exact duplicate"
        # The index returns more candidates than needed; the similarity of the sketches decides.
        near = (self._accepted[key] for key in self._near.query(text.shingles))
        if any(other.jaccard(text.shingles) >= self._threshold for other in near):
            return "near duplicate"
        key = len(self._accepted)
        self._exact.add(text.digest)
        self._accepted[key] = text.shingles
        self._near.insert(key, text.shingles, check_duplication=False)
        return None


def sketch(text: str) -> Sketch:
    """Returns the sketch of a text; white space does not change it."""
    words = _WORD.findall(text)
    # crc32 is three times as fast as the default sha1, and the permutations mix it well enough.
    shingles = _EMPTY.copy()
    last = max(1, len(words) - _SHINGLE + 1)
    shingles.update_batch({" ".join(words[i : i + _SHINGLE]).encode() for i in range(last)})
    return Sketch(hashlib.sha256(" ".join(words).encode()).digest(), LeanMinHash(shingles))
