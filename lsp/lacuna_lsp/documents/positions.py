"""Columns as a client counts them and columns in bytes: the border between LSP and everything behind it."""

from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_WIDTHS: dict[Encoding, tuple[str, int]] = {"utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def byte_column(line: bytes, character: int, encoding: Encoding) -> int:
    """The byte column of the ``character``-th code unit of a line given without its ending.

    A column past the end is the end, as LSP has it; one inside a character is that character's beginning.
    """
    if encoding == "utf-8" or line.isascii():
        column = min(character, len(line))
        while 0 < column < len(line) and line[column] & 0xC0 == 0x80:
            column -= 1
        return column
    codec, width = _WIDTHS[encoding]
    return len(line.decode().encode(codec)[: character * width].decode(codec, "ignore").encode())


def client_column(line: bytes, column: int, encoding: Encoding) -> int:
    """The number of code units in front of a byte column; a column inside a character is that character's beginning."""
    if encoding == "utf-8" or line.isascii():
        return byte_column(line, column, "utf-8")
    codec, width = _WIDTHS[encoding]
    return len(line[:column].decode("utf-8", "ignore").encode(codec)) // width


def cuts_character(line: bytes, character: int, encoding: Encoding) -> bool:
    """Whether a column lies inside a character, as between the halves of a surrogate pair."""
    column = byte_column(line, character, encoding)
    return column < len(line) and client_column(line, column, encoding) != character


def to_utf8(text: str) -> bytes:
    """A client's text in UTF-8, which lacks lone surrogates: they become U+FFFD, as long in every encoding."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Two halves that JSON brought one by one are a pair again after the round trip through UTF-16.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
