"""Characters: text that every encoding and terminal can take, and UTF-8 that ends within a character."""

import re
from typing import Any, TypeVar

Value = TypeVar("Value")

# Embeddings, overrides and isolates, and what ends them.
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")


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


def unfinished_character(data: bytes) -> int:
    """The number of bytes at the end that belong to an incomplete UTF-8 character (0 to 3)."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            return back if back < _character_length(byte) else 0
        if byte < 0x80:
            return 0
    return 0


def finish_character(data: bytes) -> bytes:
    """The least bytes that complete an incomplete UTF-8 character at the end of data."""
    back = unfinished_character(data)
    if not back:
        return b""
    head = data[-back:]
    missing = _character_length(head[0]) - back
    # after these lead bytes the lowest continuation would be overlong, which UTF-8 forbids
    lowest = {0xE0: b"\xa0", 0xF0: b"\x90"}.get(head[0], b"\x80") if back == 1 else b"\x80"
    return lowest + b"\x80" * (missing - 1)


def _character_length(lead: int) -> int:
    return 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2


def is_utf8(data: bytes) -> bool:
    """Whether data is well-formed UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
