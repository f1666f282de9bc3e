"""Lines of a text: their ends, where they begin, and how they are indented."""

import re
from collections.abc import Iterator
from typing import AnyStr

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
