"""The next word or line of a suggestion, for clients that take it part by part and cannot cut it themselves."""

import re
from typing import Literal

Unit = Literal["word", "line"]

# Blanks belong to what follows them, so that every part says something.
_PARTS: dict[Unit, re.Pattern[str]] = {"word": re.compile(r"\s*(\w+|[^\w\s]+|$)"), "line": re.compile(r"\s*[^\r\n]*")}


def first_part(text: str, unit: Unit) -> str:
    """The first word (or run of punctuation), or the first line that is not blank, with the blanks in front of it."""
    match = _PARTS[unit].match(text)
    return match[0] if match is not None else text
