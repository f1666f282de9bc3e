"""The lines of a text and their ends, its brackets, and replacing ranges of it."""

import re
from collections.abc import Iterable, Iterator
from typing import AnyStr

CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
OPENER_OF = {closer: opener for opener, closer in CLOSER_OF.items()}


def step(mark: str) -> int:
    """By how much a mark changes the depth: 1 for an opening bracket, -1 for a closing one, else 0."""
    return (mark in CLOSER_OF) - (mark in OPENER_OF)


def depth(text: str) -> int:
    """How many more brackets a text opens than it closes, whatever their kinds."""
    return sum(map(text.count, CLOSER_OF)) - sum(map(text.count, OPENER_OF))


def closers(text: str) -> str:
    """What closes the brackets that a text leaves open, those that close nothing aside."""
    found = list[str]()
    for mark in text:
        if mark in CLOSER_OF:
            found.append(CLOSER_OF[mark])
        elif found and found[-1] == mark:
            found.pop()
    return "".join(reversed(found))


def unmatched(marks: Iterable[str]) -> list[str]:
    """The brackets among some marks that stay open or close nothing, in order."""
    found = list[str]()
    for mark in marks:
        if found and mark in OPENER_OF and found[-1] == OPENER_OF[mark]:
            found.pop()
        elif step(mark):
            found.append(mark)
    return found


def splice(text: AnyStr, edits: Iterable[tuple[int, int, AnyStr]]) -> AnyStr:
    """The text with the ranges of some edits (start, end, new text), in order and disjoint, replaced."""
    pieces: list[AnyStr] = []
    position = 0
    for start, end, new in edits:
        pieces += [text[position:start], new]
        position = end
    pieces.append(text[position:])
    return text[:0].join(pieces)


LINE_END = re.compile(r"\r\n?|\n")
BYTE_LINE_END = re.compile(rb"\r\n?|\n")
# The end of a line below which a block stands.
OPENS_BLOCK = re.compile(r"([:{(\[]|=>|->|\b(do|then|begin|else|try))\s*$")


def newline_of(text: str) -> str:
    """The line ending of a text: that of its first line; a line feed where it has one line."""
    first = LINE_END.search(text)
    return first[0] if first else "\n"


def line_starts(text: str | bytes) -> list[int]:
    """The offsets at which the lines of a text begin; a text has at least one line."""
    if isinstance(text, str):
        return [0, *(end.end() for end in LINE_END.finditer(text))]
    return [0, *(end.end() for end in BYTE_LINE_END.finditer(text))]


def first_of(text: str) -> str:
    """The first line of a text, without its end."""
    return LINE_END.split(text, maxsplit=1)[0]


def indentation(text: AnyStr, blanks: AnyStr | None = None) -> AnyStr:
    """The white space that a text begins with; of ``blanks``, where they are given."""
    return text[: len(text) - len(text.lstrip(blanks))]


def lines_up(text: str, end: int) -> Iterator[str]:
    """Yield the lines of a text from the one that ends at a place upwards; none where that is before the text."""
    while end >= 0:
        start = text.rfind("\n", 0, end) + 1
        yield text[start:end]
        end = start - 1


def lines_down(text: str) -> Iterator[str]:
    """Yield the lines of a text one by one, without splitting all of it."""
    start, end = 0, text.find("\n")
    while end >= 0:
        yield text[start:end]
        start, end = end + 1, text.find("\n", end + 1)
    yield text[start:]


def last_written(text: str) -> str:
    """The last line of a text that is not blank, "" for none."""
    return next((line for line in lines_up(text, len(text)) if line.strip()), "")


def first_written(text: str) -> str:
    """The first line of a text that is not blank, "" for none."""
    return next((line for line in lines_down(text) if line.strip()), "")
