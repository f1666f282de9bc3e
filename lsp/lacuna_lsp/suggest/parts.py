"""Finds the next word or line of a suggestion, for clients that accept parts and cannot split the text themselves."""

import re
import unicodedata
from itertools import takewhile
from typing import Literal

from lacuna_model.text.characters import in_word
from lacuna_model.text.lines import indentation

Unit = Literal["word", "line"]

_LINE = re.compile(r"\s*[^\r\n]*")
# Joiners bind letters into one, as in Devanagari and in emoji.
_JOINERS = "\u200c\u200d"


def first_part(text: str, unit: Unit) -> str:
    """Returns the first word, run of punctuation or line that is not blank, with the blanks before it.

    A character keeps its combining marks.
    """
    if unit == "line":
        match = _LINE.match(text)
        return match[0] if match is not None else text
    start = len(indentation(text))
    if start == len(text):
        return text
    word = in_word(text[start])
    run = takewhile(lambda one: _is_mark(one) or (in_word(one) == word and not one.isspace()), text[start:])
    return text[: start + len("".join(run))]


def _is_mark(character: str) -> bool:
    return character in _JOINERS or unicodedata.category(character).startswith("M")
