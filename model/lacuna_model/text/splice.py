"""Replaces ranges of a text."""

from collections.abc import Iterable
from typing import AnyStr


def splice(text: AnyStr, edits: Iterable[tuple[int, int, AnyStr]]) -> AnyStr:
    """The text with the ranges of some edits (start, end, new text), in order and disjoint, replaced."""
    pieces: list[AnyStr] = []
    position = 0
    for start, end, new in edits:
        pieces += [text[position:start], new]
        position = end
    pieces.append(text[position:])
    return text[:0].join(pieces)
