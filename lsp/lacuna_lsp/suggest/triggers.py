"""Decides whether a suggestion helps at a cursor, and whether it may have several lines."""

import re
from dataclasses import dataclass
from typing import Literal, Self

from lacuna_model.core.regions import one_line
from lacuna_model.text.characters import in_word
from lacuna_model.text.lines import LINE_END, OPENS_BLOCK, first_of

# The allowed rest of the line after the cursor for a suggestion without a request: nothing, or closing brackets,
# quotes and punctuation that an editor inserts.
_CLOSERS = re.compile(r"[\s)\]}\"'`]*[:{;,]?\s*")
_COMPLETE = re.compile(r"[;}]\s*$")

Shape = Literal["none", "line", "block"]


@dataclass(frozen=True, slots=True)
class Cursor:
    """The text around a cursor: ``head`` and ``tail`` of its line, and the last line above that is not blank."""

    head: str
    tail: str
    above: str

    @classmethod
    def between(cls, before: str, after: str) -> Self:
        """Returns the cursor between two texts."""
        *lines, head = LINE_END.split(before)
        above = next((line for line in reversed(lines) if line.strip()), "")
        return cls(head, first_of(after), above)


def shape(cursor: Cursor, multiline: Literal["auto", "always", "never"], *, invoked: bool) -> Shape:
    """Returns the shape of the suggestion for a cursor.

    There is none inside a word and, unless ``invoked``, none before further text on the line or after a complete
    statement. A suggestion may have several lines on request or where a block has just been opened.
    """
    if _in_word(cursor):
        return "none"
    if not invoked and (not _CLOSERS.fullmatch(cursor.tail) or (_COMPLETE.search(cursor.head) and cursor.head.strip())):
        return "none"
    if multiline == "never" or one_line(cursor.tail):
        return "line"
    opened = OPENS_BLOCK.search(cursor.head if cursor.head.strip() else cursor.above)
    return "block" if multiline == "always" or invoked or opened else "line"


def _in_word(cursor: Cursor) -> bool:
    return in_word(cursor.head[-1:]) and in_word(cursor.tail[:1])
