"""Reads the headers of LSP's base protocol in every spelling that it allows.

Header names may be in any case, with any blanks around values; pygls accepts only the form ``Content-Length: 5``. A
stream that does not speak LSP, such as a browser's request to this port, is closed at its first line.
"""

import re
from collections.abc import Awaitable
from typing import Protocol

# The longest accepted header line; the base protocol has two short headers.
MAX_BYTES = 4096
LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(\d{1,12})[ \t]*\r?\n", re.IGNORECASE)
_HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}[ \t]*:")


class MessageSource(Protocol):
    """A source of messages."""

    def readline(self) -> Awaitable[bytes]:
        """Returns the next line with its line ending, or empty bytes at the end of the stream."""
        ...

    def readexactly(self, n: int, /) -> Awaitable[bytes]:
        """Returns exactly ``n`` bytes."""
        ...


class HeaderReader:
    """Reads from ``reader`` and rewrites headers into the form that pygls accepts."""

    def __init__(self, reader: MessageSource) -> None:
        self._reader = reader

    async def readline(self) -> bytes:
        """Returns the next header line; raises ConnectionError for a line that is no header."""
        try:
            line = await self._reader.readline()
        except ValueError as error:  # asyncio's error for a line that is too long
            raise ConnectionError("a header line is too long") from error
        if found := LENGTH.fullmatch(line):
            return b"Content-Length: " + found[1] + b"\r\n"
        if line.strip() and not (len(line) <= MAX_BYTES and _HEADER.match(line)):
            raise ConnectionError(f"this is no header of LSP: {line[:40]!r}")
        return line

    async def readexactly(self, n: int, /) -> bytes:
        """Returns the body of a message, ``n`` bytes."""
        return await self._reader.readexactly(n)
