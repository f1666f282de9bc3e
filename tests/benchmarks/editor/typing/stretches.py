"""Stretches of real files that are typed, and the cursors in them at which a suggestion may be asked for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.text.lines import CLOSER_OF, indentation

# What is typed at a cursor: a line from its start or its middle; a string, a comment or an argument, with the closers
# that an editor puts behind the cursor; a line between others that stand already; the first line of a snippet's block.
Kind = Literal["line start", "in a line", "in a string", "in a comment", "in brackets", "blank line", "in a snippet"]
LEAST = 4  # characters that are still to be typed
_STRING = re.compile(r"([\"'`])((?:\\.|(?!\1)[^\\]){6,})\1")
_COMMENT = re.compile(r"(?:^|\s)(?://|#) ?(\S.{8,})")
_CALL = re.compile(r"[\w\])](\(([^()]{6,})\)|\[([^\[\]]{6,})\])")
_OPENS = re.compile(r"\{\s*$")


class Span(msgspec.Struct, frozen=True):
    """Lines of a file, counted from 0: ``first`` to ``last``, which is excluded."""

    path: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """The ``lines`` that are typed, between those that stand ``above`` and ``below`` them in the file."""

    path: Path
    above: tuple[str, ...]
    lines: tuple[str, ...]
    below: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place of a ``kind`` between two texts, and the text that is ``wanted`` there."""

    kind: Kind
    before: str
    after: str
    wanted: str


def stretches(file: Path) -> list[Stretch]:
    """Returns the stretches that the lines of a file name, its paths relative to the file; raises RequestError."""
    found = []
    for line in file.read_bytes().splitlines():
        try:
            span = msgspec.json.decode(line, type=Span)
            lines = (file.parent / span.path).read_text("utf-8").split("\n")
        except (msgspec.DecodeError, OSError, UnicodeDecodeError) as error:
            raise RequestError(f"{file}: {error}") from None
        if not 0 <= span.first < span.last <= len(lines):
            raise RequestError(f"{file}: {span.path} has no lines {span.first} to {span.last}")
        parts = lines[: span.first], lines[span.first : span.last], lines[span.last :]
        found.append(Stretch(file.parent / span.path, *map(tuple, parts)))
    return found


def cursors(stretch: Stretch) -> Iterator[Cursor]:
    """Yields the cursors of a stretch while it is typed line by line."""
    below = "\n" + "\n".join(stretch.below)
    for row, line in enumerate(stretch.lines):
        indent, body = indentation(line), line.strip()
        if len(body) < LEAST:
            continue
        above = "".join(f"{one}\n" for one in (*stretch.above, *stretch.lines[:row]))
        yield Cursor("line start", above + indent, below, body)
        half = len(indent) + len(body) // 2
        if len(line) - half >= LEAST:
            yield Cursor("in a line", above + line[:half], below, line[half:].rstrip())
        yield from _closed(above, line, below)
        if (comment := _COMMENT.search(line)) is not None:
            at = (comment.start(1) + len(line)) // 2
            yield Cursor("in a comment", above + line[:at], below, line[at:].rstrip())
        later = "".join(f"\n{one}" for one in (*stretch.lines[row + 1 :], *stretch.below))
        yield Cursor("blank line", above + indent, later, body)
        if row and _OPENS.search(opener := stretch.lines[row - 1]):
            yield Cursor("in a snippet", above + indent, f"\n{indentation(opener)}}}{below}", body)


def _closed(above: str, line: str, below: str) -> Iterator[Cursor]:
    """Yields the cursors in a line's strings and brackets, each with the closers that an editor has put behind it."""
    if (string := _STRING.search(line)) is not None:
        at, tail = string.start(2) + len(string[2]) // 3, string[1] + _closers(line[: string.start()])
        yield Cursor("in a string", above + line[:at], tail + below, line[at : string.end(2)])
    if (call := _CALL.search(line)) is not None:
        at, end = call.start(1) + 1, call.end(1) - 1
        yield Cursor("in brackets", above + line[:at], _closers(line[:at]) + below, line[at:end])


def _closers(head: str) -> str:
    """Returns the closers of the brackets that are open at the end of a part of a line."""
    opened = ""
    for char in re.sub(r"([\"'`])(?:\\.|(?!\1)[^\\])*\1", "", head):
        if char in CLOSER_OF:
            opened = CLOSER_OF[char] + opened
        elif char == opened[:1]:
            opened = opened[1:]
    return opened
