"""The transports of the language server: stdio, Unix socket, websocket. Each client gets a server object of its own."""

import asyncio
import hmac
import http
import logging
import os
import secrets
import sys
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pygls.io_ import StdinAsyncReader, StdoutWriter, run_async, run_websocket
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response
from websockets.typing import Origin

from lacuna_lsp.commands import COMMANDS
from lacuna_lsp.connection import Locate
from lacuna_lsp.features import FEATURES, OPTIONS
from lacuna_lsp.server import Server
from lacuna_server.wire.config import sent_token

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 64 * 1024 * 1024


async def serve_stdio(locate: Locate, stdin: Any) -> int:
    """Serves one client on ``stdin``, which reads lines and bytes, and stdout; returns LSP's exit code."""
    server = _server(locate)
    with ThreadPoolExecutor(1, "stdin") as reading:
        server.protocol.set_writer(StdoutWriter(sys.stdout.buffer))
        await _converse(server, partial(run_async, reader=StdinAsyncReader(stdin, reading)))
    return 0 if server.shut_down else 1


async def serve_unix(locate: Locate, path: Path) -> None:
    """Serves every client that connects to the socket at a path, which only this user can open. Raises OSError.

    An engine's token lets the server read files, so nobody else may use it: every user can reach a TCP port.
    """

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = _server(locate)
        server.protocol.set_writer(writer)
        await _converse(server, partial(run_async, reader=reader))
        writer.close()

    if not hasattr(asyncio, "start_unix_server"):
        raise OSError("this system has no Unix sockets for it; use --ws")
    usual = os.umask(0o177)
    try:
        listening = await asyncio.start_unix_server(connected, path)
    finally:
        os.umask(usual)
    _announce(f"unix:{path}")
    try:
        async with listening:
            await listening.serve_forever()
    finally:
        path.unlink(missing_ok=True)


async def serve_ws(locate: Locate, host: str, port: int, origins: Sequence[str], token: str = "") -> None:
    """Serves every client that connects by websocket; a web page only if its origin is among ``origins``.

    Clients must send the ``token``: as ``Authorization: Bearer TOKEN``, or as ``?token=`` if they cannot set headers.
    Without one, a new one is drawn and printed as part of the address. Raises OSError.
    """
    drawn = "" if token else secrets.token_urlsafe()
    token = token or drawn

    def admit(connection: ServerConnection, request: Request) -> Response | None:
        if hmac.compare_digest(sent_token(request.headers, urlsplit(request.path).query.encode()), token.encode()):
            return None
        return connection.respond(http.HTTPStatus.UNAUTHORIZED, "a token is required: Authorization: Bearer TOKEN\n")

    async def connected(websocket: ServerConnection) -> None:
        server = _server(locate)
        await _converse(server, partial(run_websocket, websocket))

    allowed = [None, *map(Origin, origins)]
    async with serve(
        connected, host, port, origins=allowed, max_size=MAX_MESSAGE_BYTES, process_request=admit
    ) as listening:
        address, number = next(iter(listening.sockets)).getsockname()[:2]
        _announce(f"ws://{address}:{number}" + (f"/?token={drawn}" if drawn else ""))
        await listening.serve_forever()


def _server(locate: Locate) -> Server:
    """Returns a server for one client, with every feature and command; ``locate`` returns the engine's address."""
    server = Server(locate)
    for method, handler in FEATURES.items():
        server.feature(method, OPTIONS.get(method))(handler)
    for name, command in COMMANDS.items():
        server.command(name)(command)
    return server


async def _converse(server: Server, conversation: Callable[..., Awaitable[None]]) -> None:
    """Runs a conversation to its end, also when the client disconnects without warning."""
    told = {"logger": log, "error_handler": server.report_server_error}
    try:
        await conversation(stop_event=server.ended, protocol=server.protocol, **told)
    except (ConnectionError, ValueError, asyncio.IncompleteReadError) as error:  # ValueError: an overlong line
        log.info("the client has gone: %s", error)
    finally:
        await server.close()


def _announce(address: str) -> None:
    print(f"listening on {address}", file=sys.stderr, flush=True)
