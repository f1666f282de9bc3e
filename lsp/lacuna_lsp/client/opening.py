"""The first bytes of a client: headers of a message, and what it asks before a server is there."""

import io
import re
from collections.abc import Awaitable
from typing import BinaryIO, Protocol

import msgspec

from lacuna_lsp.client import settings
from lacuna_model.core.errors import LacunaError
from lacuna_server.client import starting
from lacuna_server.wire import layers

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


# The header of a message has two lines at most.
MAX_LINES = 4


class Opened:
    """A client's stream whose first message has been read already: it is given again, then the rest."""

    def __init__(self, stream: BinaryIO) -> None:
        self.message, head = _first_message(stream)
        self._again = io.BytesIO(head + self.message)
        self._stream = stream

    def readline(self) -> bytes:
        """The next line with its line ending; empty at the end of the stream."""
        return self._again.readline() or self._stream.readline()

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer at the end of the stream; what was read at first ends with a message."""
        return self._again.read(size) or self._stream.read(size)


class _Folder(msgspec.Struct):
    uri: str


class _Params(msgspec.Struct, rename="camel"):
    root_uri: str | None = None
    workspace_folders: list[_Folder] | None = None
    initialization_options: object = None


class _Initialize(msgspec.Struct, tag_field="method", tag="initialize"):
    params: _Params


def start_engine(message: bytes) -> None:
    """Start this user's engine, if none runs, as the settings in the message ``initialize`` want it.

    Whatever is wrong is left to the language server, which tells the client.
    """
    try:
        params = msgspec.json.decode(message, type=_Initialize).params
        folders = settings.folders([folder.uri for folder in params.workspace_folders or ()], params.root_uri)
        found = [*settings.of_files(folders), settings.parse(params.initialization_options)]
        starting.begin(*starting.arguments(layers.settings(found)))
    except (msgspec.MsgspecError, LacunaError, OSError, ValueError):
        return


def _first_message(stream: BinaryIO) -> tuple[bytes, bytes]:
    """The body of the first message and the header before it; no body if the stream does not begin with a message."""
    head, length = b"", 0
    for _ in range(MAX_LINES):
        line = stream.readline(MAX_BYTES)
        head += line
        if found := LENGTH.fullmatch(line):
            length = int(found[1])
        if not line.strip():
            return (stream.read(length) if line else b""), head
    return b"", head
