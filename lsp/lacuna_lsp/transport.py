"""The transports of the language server: stdio, TCP and websocket. Each client gets a server object of its own."""

import asyncio
import hmac
import http
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

from pygls.io_ import StdinAsyncReader, StdoutWriter, run_async, run_websocket
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response
from websockets.typing import Origin

from lacuna_lsp.client.headers import HeaderReader
from lacuna_lsp.server import build
from lacuna_lsp.session.server_connection import Server
from lacuna_server.client.client import Address

log = logging.getLogger(__name__)

Locate = Callable[..., Awaitable[Address]]
FAILED = 1
MAX_MESSAGE_BYTES = 64 * 1024 * 1024


async def serve_stdio(locate: Locate) -> int:
    """Serves one client on stdin and stdout; returns LSP's exit code."""
    server = build(locate)
    with ThreadPoolExecutor(1, "stdin") as reading:
        server.protocol.set_writer(StdoutWriter(sys.stdout.buffer))
        reader = HeaderReader(StdinAsyncReader(sys.stdin.buffer, reading))
        await _converse(server, run_async(server.ended, reader, server.protocol, log, server.report_server_error))
    return 0 if server.shut_down else FAILED


async def serve_tcp(locate: Locate, host: str, port: int) -> None:
    """Serves every client that connects by TCP."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = build(locate)
        server.protocol.set_writer(writer)
        lines = HeaderReader(reader)
        await _converse(server, run_async(server.ended, lines, server.protocol, log, server.report_server_error))
        writer.close()

    listening = await asyncio.start_server(connected, host, port)
    _announce("tcp", *listening.sockets[0].getsockname()[:2])
    async with listening:
        await listening.serve_forever()


async def serve_ws(locate: Locate, host: str, port: int, origins: Sequence[str], token: str = "") -> None:
    """Serves every client that connects by websocket; a web page only if its origin is among ``origins``.

    With a ``token``, clients must send it: as ``Authorization: Bearer TOKEN``, or as ``?token=`` if they cannot set
    headers.
    """

    def admit(connection: ServerConnection, request: Request) -> Response | None:
        if not token or hmac.compare_digest(_token_of(request).encode(), token.encode()):
            return None
        return connection.respond(http.HTTPStatus.UNAUTHORIZED, "a token is required: Authorization: Bearer TOKEN\n")

    async def connected(websocket: ServerConnection) -> None:
        server = build(locate)
        await _converse(
            server, run_websocket(websocket, server.ended, server.protocol, log, server.report_server_error)
        )

    allowed = [None, *map(Origin, origins)]
    async with serve(
        connected, host, port, origins=allowed, max_size=MAX_MESSAGE_BYTES, process_request=admit
    ) as listening:
        _announce("ws", *next(iter(listening.sockets)).getsockname()[:2])
        await listening.serve_forever()


def _token_of(request: Request) -> str:
    """Returns the token of a handshake, or "" without one."""
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return given.strip()
    return parse_qs(urlsplit(request.path).query).get("token", [""])[0]


async def _converse(server: Server, conversation: Awaitable[None]) -> None:
    """Runs a conversation to its end, also when the client disconnects without warning."""
    try:
        await conversation
    except (ConnectionError, asyncio.IncompleteReadError) as error:
        log.info("the client has gone: %s", error)
    finally:
        await server.close()


def _announce(scheme: str, host: str, port: int) -> None:
    print(f"listening on {scheme}://{host}:{port}", file=sys.stderr, flush=True)
