"""Converts between the client's columns and columns in bytes: LSP uses the former, all other code the latter."""

from typing import Literal

from lacuna_model.text.characters import well_formed, within_character

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_WIDTHS: dict[Encoding, tuple[str, int]] = {"utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def byte_column(line: bytes, character: int, encoding: Encoding) -> int:
    """Returns the byte column of the ``character``-th code unit of a line, which is given without its ending.

    A column past the end becomes the end, as LSP demands; one inside a character becomes the start of that character.
    """
    if encoding == "utf-8" or line.isascii():
        column = min(character, len(line))
        while within_character(line, column):
            column -= 1
        return column
    codec, width = _WIDTHS[encoding]
    return len(line.decode().encode(codec)[: character * width].decode(codec, "ignore").encode())


def client_column(line: bytes, column: int, encoding: Encoding) -> int:
    """Returns the number of code units before a byte column; one inside a character becomes its start."""
    if encoding == "utf-8" or line.isascii():
        return byte_column(line, column, "utf-8")
    codec, width = _WIDTHS[encoding]
    return len(line[:column].decode("utf-8", "ignore").encode(codec)) // width


def cuts_character(line: bytes, character: int, encoding: Encoding) -> bool:
    """Whether a column lies inside a character, for example between the halves of a surrogate pair."""
    column = byte_column(line, character, encoding)
    return column < len(line) and client_column(line, column, encoding) != character


def to_utf8(text: str) -> bytes:
    """Encodes a client's text as UTF-8; lone surrogates become U+FFFD, which is as long in every encoding."""
    return well_formed(text).encode()
