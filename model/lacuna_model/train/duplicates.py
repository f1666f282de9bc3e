"""Exact and near duplicates: a hash of the normalised text, then MinHash over token shingles."""

import hashlib
import re
import zlib

from datasketch import MinHash, MinHashLSH  # type: ignore[import-untyped]  # ships no type information

_WORD = re.compile(r"\w+|[^\w\s]")
_SHINGLE = 5
_PERMUTATIONS = 64
_EMPTY = MinHash(num_perm=_PERMUTATIONS, hashfunc=zlib.crc32)


class Duplicates:
    """Remembers every document it has accepted and recognises copies of them."""

    def __init__(self, threshold: float = 0.8) -> None:
        self._exact: set[bytes] = set()
        self._near = MinHashLSH(threshold=threshold, num_perm=_PERMUTATIONS)
        self._threshold = threshold
        self._sketches: dict[int, MinHash] = {}

    def reason(self, text: str) -> str | None:
        """Accept a new text (None), or say how it repeats an accepted one."""
        words = _WORD.findall(text)
        digest = hashlib.sha256(" ".join(words).encode()).digest()
        if digest in self._exact:
            return "exact duplicate"
        sketch = _sketch(words)
        # The index answers by bands and is generous; the sketches themselves decide.
        if any(self._sketches[key].jaccard(sketch) >= self._threshold for key in self._near.query(sketch)):
            return "near duplicate"
        key = len(self._sketches)
        self._exact.add(digest)
        self._sketches[key] = sketch
        self._near.insert(key, sketch, check_duplication=False)
        return None


def _sketch(words: list[str]) -> MinHash:
    # crc32 is three times as fast as the default sha1 and the permutations mix it well enough for this.
    sketch = _EMPTY.copy()
    last = max(1, len(words) - _SHINGLE + 1)
    sketch.update_batch({" ".join(words[i : i + _SHINGLE]).encode() for i in range(last)})
    return sketch
