"""The service after a guard has acted: whatever it closes, whoever comes next is served, with the token and without.

Each service is a process of its own, whose event loop serves own clients first.
"""

import asyncio
import base64
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import trustme
from tests.server.conftest import Serve
from tests.server.live_service import fill
from websockets.frames import CloseCode, Frame, Opcode

from lacuna_server.client.client import Address, Client
from lacuna_server.service.connections import MAX_FRAGMENTS, RESERVED
from lacuna_server.wire.protocol import Open

TIMEOUT_S = 60
# So many connections are closed at once. The next ones get the numbers of their descriptors.
NUM_CLOSED = 20
LARGEST = 100_000
HEAD = b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n"  # an answer that waits for no model
POST = b"POST /infill HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n"
KEY = base64.b64encode(bytes(16))
UPGRADE = (
    b"GET /v1/ws HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: " + KEY + b"\r\nsec-websocket-protocol: lacuna.v1.json\r\n"
)
HELLO = Frame(Opcode.TEXT, b'{"type":"hello","client":"stranger"}').serialize(mask=True)
TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
Talking = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def framed(opcode: Opcode, data: bytes, *, ends: bool = True) -> bytes:
    return Frame(opcode, data, fin=ends).serialize(mask=True)


# What strangers send, and then nothing. The service closes each of these connections.
SENT = {
    "nothing": b"",
    "half a head": HEAD[:30],
    "a head without end": HEAD + b"a: b\r\n" * 20_000,
    "no HTTP": TLS_HELLO,
    "half a body": POST + b"{",
    "requests, and half of one": (HEAD + b"\r\n") * 3 + HEAD[:20],
    "a foreign page's greeting": UPGRADE + b"origin: http://elsewhere\r\n\r\n",
    "a websocket without hello": UPGRADE + b"\r\n",
    "a websocket that answers no ping": UPGRADE + b"\r\n" + HELLO,
    "a frame without mask": UPGRADE + b"\r\n" + Frame(Opcode.TEXT, b"x").serialize(mask=False),
    "a message that is too long": UPGRADE + b"\r\n" + framed(Opcode.BINARY, bytes(LARGEST + 1))[:1000],
    "endless fragments": UPGRADE
    + b"\r\n"
    + framed(Opcode.BINARY, b"", ends=False)
    + framed(Opcode.CONT, b"", ends=False) * (MAX_FRAGMENTS + 1),
    "a goodbye": UPGRADE + b"\r\n" + HELLO + framed(Opcode.CLOSE, CloseCode.NORMAL_CLOSURE.to_bytes(2, "big")),
}


async def connected(address: Address) -> Talking:
    host, port = address.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def end(reader: asyncio.StreamReader) -> None:
    """Wait until the service has closed a connection."""
    try:
        while await reader.read(65536):
            pass
    except ConnectionResetError:
        pass


async def all_closed(address: Address, data: bytes, number: int = NUM_CLOSED) -> None:
    """Open connections at once, send the same on each, and wait until the service has closed all of them."""
    opened = [await connected(address) for _ in range(number)]
    for _, writer in opened:
        writer.write(data)
    async with asyncio.timeout(TIMEOUT_S):
        await asyncio.gather(*(end(reader) for reader, _ in opened))
    for _, writer in opened:
        writer.close()


async def answers(address: Address, headers: bytes = b"") -> bytes:
    """The first line of the answer to a request on a connection of its own."""
    reader, writer = await connected(address)
    async with asyncio.timeout(TIMEOUT_S):
        writer.write(HEAD + headers + b"\r\n")
        found = await reader.readline()
    writer.close()
    return found


async def everybody_is_served(address: Address, number: int = NUM_CLOSED) -> None:
    """Check that strangers, and own clients at the port and at the private socket, get answers on new connections."""
    token = f"authorization: Bearer {address.token}\r\n".encode()
    for headers in [b"", token] * (number // 2 + 1):
        assert await answers(address, headers) == b"HTTP/1.1 200 OK\r\n"
    for where in (Address(address.url), Address(address.url, address.token), address):
        async with asyncio.timeout(TIMEOUT_S), await Client.connect(where) as client:
            client.open(Open("a", "text", 1))
            await fill(client)


@pytest.fixture
def guarded(serve: Serve) -> Callable[..., Address]:
    """Starts a service whose guards act soon."""

    def start(**more: object) -> Address:
        soon = {"head_timeout_s": 0.5, "body_timeout_s": 0.5, "ping_interval_s": 0.3, "ping_timeout_s": 0.3}
        return serve("load", **soon | {"max_message_bytes": LARGEST, "max_document_bytes": LARGEST} | more)

    return start


async def test_new_connections_are_served_after_a_guard_has_closed_others(guarded: Callable[..., Address]) -> None:
    address = guarded()
    for what, data in SENT.items():
        await all_closed(address, data)
        try:
            await everybody_is_served(address)
        except (TimeoutError, ConnectionError):
            pytest.fail(f"nobody is served after {what}")


async def test_new_connections_are_served_after_old_ones_made_room(serve: Serve) -> None:
    most = 24
    address = serve("load", open_files=most + RESERVED)
    strangers: list[Talking] = [await connected(address) for _ in range(4 * most)]
    ends = [asyncio.create_task(end(reader)) for reader, _ in strangers]
    async with asyncio.timeout(TIMEOUT_S):
        while sum(task.done() for task in ends) < 3 * most:
            await asyncio.sleep(0.02)
    await everybody_is_served(address, 2 * most)
    for _, writer in strangers:
        writer.close()
    await asyncio.gather(*ends)


async def test_connections_that_begin_no_tls_are_closed_and_new_ones_are_served(
    guarded: Callable[..., Address], tmp_path: Path
) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    address = guarded(cert=f'"{tmp_path / "cert.pem"}"', key=f'"{tmp_path / "key.pem"}"')
    plain = Address(address.url.replace("https", "http"), address.token)
    async with asyncio.timeout(50):  # asyncio itself waits for a minute
        await all_closed(plain, b"")
        await all_closed(plain, TLS_HELLO[:20])
    known = ssl.create_default_context()
    authority.configure_trust(known)
    host, port = plain.url.removeprefix("http://").split(":")
    for headers in (b"", f"authorization: Bearer {address.token}\r\n".encode()) * NUM_CLOSED:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(host, int(port), ssl=known)
            writer.write(HEAD + headers + b"\r\n")
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
            writer.close()
            with suppress(OSError):  # TLS says goodbye before it closes
                await writer.wait_closed()
