"""Finds the next word or line of a suggestion, for clients that accept parts and cannot split the text themselves."""

import re
from typing import Literal

Unit = Literal["word", "line"]

# Blanks belong to the following word or line, so no part is blank.
_PARTS: dict[Unit, re.Pattern[str]] = {"word": re.compile(r"\s*(\w+|[^\w\s]+|$)"), "line": re.compile(r"\s*[^\r\n]*")}


def first_part(text: str, unit: Unit) -> str:
    """Returns the first word, run of punctuation or line that is not blank, with the blanks before it."""
    match = _PARTS[unit].match(text)
    return match[0] if match is not None else text
