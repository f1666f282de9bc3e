"""The lines of a text and their ends, its brackets, replacing ranges of it; characters that every encoding takes."""

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Any, AnyStr, TypeVar

CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
OPENER_OF = {closer: opener for opener, closer in CLOSER_OF.items()}
Value = TypeVar("Value")

# Embeddings, overrides and isolates, and what ends them.
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")


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
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
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


def with_feeds(text: str) -> str:
    """A text whose lines end with a line feed where they ended with CRLF."""
    return text.replace("\r\n", "\n")


def lines_of(text: str, *, keepends: bool = False) -> list[str]:
    """The lines of a text as editors count them, without an empty one at its end.

    ``str.splitlines`` ends lines at form feeds, U+0085, U+2028 and others, too.
    """
    return [line if keepends else line.rstrip("\r\n") for line in _LINE.findall(text)]


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


def directions(text: str) -> frozenset[str]:
    """The characters of a text that change the order in which it is shown: a reader does not see what it says."""
    return frozenset(_DIRECTIONS.findall(text))


def well_formed(value: Value) -> Value:
    """``value`` with U+FFFD in place of every lone surrogate in its strings, lists, tuples and dictionaries.

    JSON has lone surrogates where a client cut a character in two, Python where a file name or an argument is not
    UTF-8 (PEP 383). Two surrogates that JSON escaped one by one are joined.
    """
    return _well_formed(value)  # type: ignore[no-any-return]


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    elif isinstance(value, (list, tuple)):
        return type(value)(map(_well_formed, value))
    elif isinstance(value, dict):
        return {_well_formed(name): _well_formed(one) for name, one in value.items()}
    return value


def in_word(character: str) -> bool:
    """Whether a character belongs to words, as names have it; False for none."""
    return character.isalnum() or character == "_"


def within_character(data: bytes | bytearray, place: int) -> bool:
    """Whether an offset of UTF-8 lies within a character."""
    return place < len(data) and data[place] & 0xC0 == 0x80


def finish_character(data: bytes) -> bytes:
    """The least bytes that complete an incomplete UTF-8 character at the end of data."""
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    decoder.decode(data[-3:])
    begun = decoder.getstate()[0]
    # after some lead bytes the lowest continuation would be overlong, which UTF-8 forbids
    tails = (first + b"\x80" * more for more in range(3) for first in (b"\x80", b"\x90", b"\xa0"))
    return next(tail for tail in tails if is_utf8(begun + tail)) if begun else b""


def is_utf8(data: bytes) -> bool:
    """Whether data is well-formed UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
