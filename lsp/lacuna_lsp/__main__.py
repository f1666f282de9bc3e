"""The command ``lacuna-lsp``, or ``python -I -m lacuna_lsp``: selects transport and engine, and writes the log file.

By the first message of a client its engine starts while the language server is still being imported.
"""

import argparse
import contextlib
import io
import logging
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import BinaryIO

import msgspec

from lacuna_lsp.client import settings
from lacuna_model.core.errors import LacunaError, RequestError
from lacuna_model.hub.atomic import PRIVATE
from lacuna_server.client import starting
from lacuna_server.client.lifecycle import Address
from lacuna_server.client.starting import TOKEN_VARIABLE, address_at, find_or_start, log_path
from lacuna_server.wire import layers

# The token that clients of --ws must send.
CLIENT_TOKEN_VARIABLE = "LACUNA_LSP_TOKEN"
TURN_OVER_BYTES = 1_000_000
_LENGTH = re.compile(rb"Content-Length: (\d{1,12})\r\n")
# The header of a message has two lines at most, which are short.
MAX_LINES, MAX_BYTES = 4, 4096


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until the client ends the conversation; returns LSP's exit code, 0 after a proper shutdown."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.version:
        from importlib.metadata import version

        print(version("lacuna-code"))
        return 0
    try:
        configure_log(options.log_level)
    except RequestError as error:
        parser.error(str(error))
    locate = _engine_at(options.engine)
    try:
        if options.unix is None and options.ws is None:
            stdin = Opened(sys.stdin.buffer)
            if options.engine is None:
                start_engine(stdin.message)
        import asyncio  # while the engine starts

        from lacuna_lsp import transport

        if options.unix is not None:
            asyncio.run(transport.serve_unix(locate, options.unix))
        elif options.ws is not None:
            token = os.environ.get(CLIENT_TOKEN_VARIABLE, "")
            asyncio.run(transport.serve_ws(locate, options.host, options.ws, options.origin, token))
        else:
            return asyncio.run(transport.serve_stdio(locate, stdin))
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"cannot listen: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lacuna-lsp", description="The language server of Lacuna.")
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    transports = parser.add_mutually_exclusive_group()
    transports.add_argument("--stdio", action="store_true", help="use stdin and stdout (the default)")
    transports.add_argument("--unix", type=Path, metavar="PATH", help="listen on a Unix socket that only you can open")
    transports.add_argument(
        "--ws",
        type=int,
        metavar="PORT",
        help=f"listen for websockets; 0: any free port. Clients send the token in ${CLIENT_TOKEN_VARIABLE}, or without "
        "it the one that is printed",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address of --ws to listen on (default: %(default)s)")
    parser.add_argument(
        "--origin", action="append", default=[], help="origin of web pages that may connect to --ws; may be repeated"
    )
    parser.add_argument(
        "--engine",
        type=_url,
        metavar="URL",
        help=f"use the engine at this URL, with the token in ${TOKEN_VARIABLE}",
    )
    parser.add_argument("--log-level", default="WARNING", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    return parser


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a URL such as http://127.0.0.1:8377")
    return text


def _engine_at(url: str | None) -> Callable[..., Awaitable[Address]]:
    """Returns a function for the engine's address: the given one, else the user's own engine, started if needed."""
    if url is None:
        return find_or_start

    async def given(*arguments: str) -> Address:
        token = os.environ.get(TOKEN_VARIABLE, "")
        return Address(url, token) if token else address_at(url)

    return given


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


def start_engine(message: bytes) -> None:
    """Start this user's engine, if none runs, as the settings in the message ``initialize`` want it.

    Whatever is wrong is left to the language server, which tells the client.
    """
    try:
        said = msgspec.json.decode(message)
        if said["method"] != "initialize":
            return
        params = said["params"]
        uris = [folder["uri"] for folder in params.get("workspaceFolders") or ()]
        files = settings.of_files(settings.folders(uris, params.get("rootUri")))
        found = [*files, settings.parse(params.get("initializationOptions"))]
        starting.begin(*starting.arguments(layers.settings(found)))
    except (LookupError, TypeError, AttributeError, msgspec.MsgspecError, LacunaError, OSError, ValueError):
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


class PrivateFile(RotatingFileHandler):
    """A log that only this user can read, also after it was turned over."""

    def _open(self) -> TextIOWrapper:
        def opened(name: str, flags: int) -> int:
            return os.open(name, flags, PRIVATE)

        return open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=opened)


def configure_log(level: str) -> None:
    """Logs records of ``level`` and above; records that contain users' code only at DEBUG."""
    path = log_path("lsp")
    form = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
    logging.raiseExceptions = False  # an error while logging is ignored, such as a full disk
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    handler = PrivateFile(path, maxBytes=TURN_OVER_BYTES, backupCount=1, encoding="utf-8", delay=True)
    logging.basicConfig(handlers=[handler], level=level, format=form)
    if level != "DEBUG":
        for name in ("pygls", "websockets"):
            logging.getLogger(name).setLevel(logging.WARNING)


if __name__ == "__main__":
    sys.exit(main())
