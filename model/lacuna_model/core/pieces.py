"""Cuts a text into pieces by its content: a change moves no border but those beside it."""

from collections.abc import Iterator, Sequence
from operator import itemgetter

import numpy as np

# The bytes of a piece, at least and at most: one that a key changes is encoded again.
LEAST_BYTES, MOST_BYTES = 1024, 8192
# Of the lines that may end a piece, about one in so many does.
_ONE_IN = 32
# The bytes around a line end that say so, and what each is multiplied by.
_SEEN = ((-6, 2749), (-4, 6151), (-3, 193), (-2, 12289), (0, 53), (3, 24593), (5, 769), (8, 49157))


def cut(text: bytes) -> Iterator[bytes]:
    """Yield the pieces of a text in order: whole lines, but of a line that is longer than a piece.

    The bytes around its end say whether a piece ends with a line. Tokens of most vocabularies do not reach across such
    a border: the next line is not empty.
    """
    first = 0
    for end in (*_marked(text), len(text)):
        while end - first > MOST_BYTES:
            stop = text.rfind(b"\n", first, first + MOST_BYTES) + 1 or first + MOST_BYTES
            yield text[first:stop]
            first = stop
        if end - first >= LEAST_BYTES or first < end == len(text):
            yield text[first:end]
            first = end


def _marked(text: bytes) -> list[int]:
    """The ends of the lines with which a piece may end."""
    data = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n")) + 1
    if not len(ends):
        return []
    sums = np.zeros(len(ends), dtype=np.uint32)
    for place, factor in _SEEN:
        sums += np.take(data, ends + place, mode="clip") * np.uint32(factor)
    chosen = ends[(sums >> np.uint32(6)) % _ONE_IN == 0]
    chosen = chosen[chosen < len(data)]
    found: list[int] = chosen[data[chosen] > ord("\r")].tolist()
    return found


def nearest_first(texts: Sequence[bytes]) -> list[bytes]:
    """The pieces of the texts between some gaps, each once, those nearest to a gap first."""
    found = list[tuple[int, bytes]]()
    for number, text in enumerate(texts):
        begin = 0
        for piece in cut(text):
            end = begin + len(piece)
            behind = begin if number else len(text)
            before = len(text) - end if number < len(texts) - 1 else len(text)
            found.append((min(behind, before), piece))
            begin = end
    return list(dict.fromkeys(piece for _, piece in sorted(found, key=itemgetter(0))))
