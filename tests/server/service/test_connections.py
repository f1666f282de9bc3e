"""Connections are bounded: those of strangers make room, silent ones are closed, and the user's own ones stay."""

import asyncio
import resource
from contextlib import AsyncExitStack

import pytest
from tests.server.live_service import infill, live

from lacuna_server.client.client import Address, Client
from lacuna_server.daemon import app
from lacuna_server.service import connections
from lacuna_server.wire.protocol import Open, Result

pytestmark = pytest.mark.usefixtures("scripted_engine")
TOKEN = "a-token-of-this-start"
HEALTH = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
TIMEOUT_S = 30


async def connected(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = address.split(":")
    return await asyncio.open_connection(host, int(port))


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await reader.read() == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("begun", [b"", HEALTH[:20], b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20])
async def test_a_connection_without_a_request_is_closed(begun: bytes) -> None:
    async with live(head_timeout_s=0.2) as (_, address):
        reader, writer = await connected(address)
        writer.write(begun)
        assert await is_closed(reader)
        writer.close()


async def test_a_connection_is_closed_if_a_later_request_does_not_end() -> None:
    async with live(head_timeout_s=0.2) as (_, address):
        reader, writer = await connected(address)
        for _ in range(3):
            writer.write(HEALTH)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 ")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
        writer.write(HEALTH[:20])
        assert await is_closed(reader)
        writer.close()


async def test_connections_of_strangers_make_room_and_own_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "most_connections", lambda: 4)
    async with live(token_of_start=TOKEN) as (_, address), AsyncExitStack() as stack:
        own = await stack.enter_async_context(await Client.connect(Address(f"http://{address}", TOKEN)))
        strangers = [await connected(address) for _ in range(12)]
        for reader, _ in strangers[:9]:
            assert await is_closed(reader)
        second = await stack.enter_async_context(await Client.connect(Address(f"http://{address}", TOKEN)))
        for client in (own, second):
            client.open(Open("a", "text", 1))
            request = infill("1", "a")
            answers = [answer async for answer in client.infill(request)]
            assert isinstance(answers[-1], Result)
        for _, writer in strangers:
            writer.close()


async def test_where_all_connections_are_own_ones_a_strangers_makes_room_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app, "most_connections", lambda: 2)
    async with live(token_of_start=TOKEN) as (_, address), AsyncExitStack() as stack:
        own = [
            await stack.enter_async_context(await Client.connect(Address(f"http://{address}", TOKEN))) for _ in range(2)
        ]
        for _ in range(3):
            reader, writer = await connected(address)
            assert await is_closed(reader)
            writer.close()
        for client in own:
            assert (await client.status()).sessions == 2


async def test_of_a_stranger_little_is_read_at_once() -> None:
    read: asyncio.Queue[int] = asyncio.Queue()
    counted, sent = connections.Connections(4), 100_000

    class Reader(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            counted.add(transport)

        def data_received(self, data: bytes) -> None:
            read.put_nowait(len(data))

    server = await asyncio.get_running_loop().create_server(Reader, "127.0.0.1", 0)
    async with server, asyncio.timeout(TIMEOUT_S):
        host, port = server.sockets[0].getsockname()
        _, writer = await asyncio.open_connection(host, port)
        writer.write(bytes(sent))
        while sent:
            part = await read.get()
            assert part <= connections.READ_AT_ONCE
            sent -= part
        writer.close()


def test_the_limit_of_open_files_is_raised() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
        most = connections.most_connections()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= most + connections.RESERVED
        if hard >= connections.MOST + connections.RESERVED or hard == resource.RLIM_INFINITY:
            assert most == connections.MOST
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
