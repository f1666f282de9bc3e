"""The headers of LSP's base protocol, as any client may write them: names in any case, any blanks around values.

pygls reads ``Content-Length: 5`` and nothing else. A stream that does not speak LSP at all (a browser that was led to
this port, say) is ended at its first line.
"""

import re
from collections.abc import Awaitable
from typing import Protocol

# The longest header line that anybody needs; the base protocol has two short ones.
MOST_BYTES = 4096
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(\d{1,12})[ \t]*\r?\n", re.IGNORECASE)
_HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}[ \t]*:")


class Reader(Protocol):
    """Where messages come from."""

    def readline(self) -> Awaitable[bytes]:
        """The next line with its end; empty at the end of the stream."""
        ...

    def readexactly(self, n: int, /) -> Awaitable[bytes]:
        """So many bytes."""
        ...


class HeaderReader:
    """Reads from ``reader``, headers in the form that pygls knows."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def readline(self) -> bytes:
        """The next line of a header. Raises ConnectionError where it is none."""
        try:
            line = await self._reader.readline()
        except ValueError as error:  # how asyncio says that a line is endless
            raise ConnectionError("a header line is too long") from error
        if found := _LENGTH.fullmatch(line):
            return b"Content-Length: " + found[1] + b"\r\n"
        if line.strip() and not (len(line) <= MOST_BYTES and _HEADER.match(line)):
            raise ConnectionError(f"this is no header of LSP: {line[:40]!r}")
        return line

    async def readexactly(self, n: int, /) -> bytes:
        """The body of a message."""
        return await self._reader.readexactly(n)
