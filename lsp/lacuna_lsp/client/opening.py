"""The first message of a client, by which its engine starts while the language server is still being imported."""

import io
import re
from typing import BinaryIO

import msgspec

from lacuna_lsp.client import settings
from lacuna_model.core.errors import LacunaError
from lacuna_server.client import starting
from lacuna_server.wire import layers

_LENGTH = re.compile(rb"Content-Length: (\d{1,12})\r\n")
# The header of a message has two lines at most, which are short.
MAX_LINES, MAX_BYTES = 4, 4096


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
        if found := _LENGTH.fullmatch(line):
            length = int(found[1])
        if not line.strip():
            return (stream.read(length) if line else b""), head
    return b"", head
