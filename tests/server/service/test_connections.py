"""Connections and their memory are bounded, and this user's own clients are still served."""

import asyncio
import contextlib
import json
import resource
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send
from tests.server.live_service import fill, infill, live, opened, talk
from tests.server.strangers import Crowd, crowded, type_on
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from lacuna_server.client.client import Address, Client
from lacuna_server.daemon import app
from lacuna_server.service import connections
from lacuna_server.service.connections import PRESENT, Connections, charging
from lacuna_server.service.own_first import OwnFirst
from lacuna_server.service.service import Service
from lacuna_server.wire.documents import Pool
from lacuna_server.wire.protocol import Error, Hello, Open, ServiceError

pytestmark = pytest.mark.usefixtures("scripted_engine")
TOKEN = "a-token-of-this-start"
TIMEOUT_S = 30


async def connected(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = address.split(":")
    return await asyncio.open_connection(host, int(port))


async def own_client(address: str, **options: Any) -> Client:
    return await Client.connect(Address(f"http://{address}", TOKEN), **options)


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await reader.read() == b""
    except ConnectionResetError:
        return True


async def test_connections_of_strangers_make_room_and_own_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "most_connections", lambda: 4)
    async with live(token_of_start=TOKEN) as (_, address), AsyncExitStack() as stack:
        own = [await stack.enter_async_context(await own_client(address))]
        strangers = [await connected(address) for _ in range(12)]
        for reader, _ in strangers[:9]:
            assert await is_closed(reader)
        own += [await stack.enter_async_context(await own_client(address)) for _ in range(3)]
        strangers.append(await connected(address))  # all others are own ones: this one makes room itself
        for reader, writer in strangers:
            assert await is_closed(reader)
            writer.close()
        for client in own:
            client.open(Open("a", "text", 1))
            await fill(client)


async def test_of_a_stranger_little_is_read_at_once() -> None:
    read: asyncio.Queue[int] = asyncio.Queue()
    counted, sent = connections.Connections(4, OwnFirst()), 100_000

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


async def test_sessions_of_strangers_leave_room_for_those_with_the_token() -> None:
    async with live(token_of_start=TOKEN, max_sessions=16) as (_, address), AsyncExitStack() as stack:
        for _ in range(14):
            await stack.enter_async_context(talk(address))
        refused, _ = await stack.enter_async_context(talk(address, hello=False))
        await refused.send(Hello())
        assert (await refused.receive(Error)).code == "overloaded"
        for _ in range(2):
            own = await stack.enter_async_context(await own_client(address))
        assert (await own.status()).sessions == 16


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


POOL = 2 * 1024 * 1024
PIECE = "x" * 100_000


@asynccontextmanager
async def small() -> AsyncIterator[tuple[Service, str]]:
    """A service with little memory for its clients. At the end, all of this memory must be free again."""
    async with live(token_of_start=TOKEN, max_held_bytes=2 * POOL) as (service, address):
        yield service, address
        async with asyncio.timeout(30):
            while service.pool.held:
                await asyncio.sleep(0.02)


async def is_served(address: str, **options: Any) -> None:
    """Check that this user's own client gets a fill while other clients are greedy."""
    async with await own_client(address, **options) as client:
        client.open(Open("own", PIECE, 1))
        await fill(client, "own")


async def test_the_memory_for_documents_is_bounded() -> None:
    async with small() as (service, address), AsyncExitStack() as stack:
        for _ in range(10):
            talking, _ = await stack.enter_async_context(talk(address))
            await talking.send(*(opened(str(number), PIECE) for number in range(10)))
            refused = await talking.receive(Error)
            assert (refused.code, refused.retry_after_ms > 0) == ("overloaded", True)
        assert service.pool.held <= POOL // 2
        await is_served(address)


async def test_the_memory_for_requests_is_bounded() -> None:
    async with small() as (service, address), talk(address) as (talking, _):
        await talking.send(opened("a", PIECE))
        more = {"supersede": False, "steps": 1000, "step_s": 0.01}
        await talking.send(*(infill(str(number), "a", **more) for number in range(10)))
        refused = await talking.receive(Error)
        assert refused.code == "overloaded"
        assert "bytes" in refused.message
        await is_served(address)
        assert service.pool.held <= POOL // 2


async def test_the_memory_for_answers_that_nobody_reads_is_bounded() -> None:
    async with small() as (service, address), AsyncExitStack() as stack:
        for _ in range(4):
            talking, _ = await stack.enter_async_context(talk(address, max_queue=1, close_timeout=0.1))
            await talking.send(opened("a", "COPY" * 25_000))
            with contextlib.suppress(ConnectionClosed):
                for number in range(200):
                    await talking.send(infill(str(number), "a"))
                    if number % 5 == 0:
                        await asyncio.sleep(0.01)
        await is_served(address)
        assert service.pool.held <= POOL // 2


async def test_strangers_who_end_no_message_leave_room_for_those_of_own_clients() -> None:
    async with small() as (_, address), AsyncExitStack() as stack:
        left = POOL
        for _ in range(8):  # each takes nearly all that one client may take
            size = left // 2 - 16_384
            talking, _ = await stack.enter_async_context(talk(address, close_timeout=0.1))
            with contextlib.suppress(ConnectionClosed):
                talking.connection.transport.write(Frame(Opcode.BINARY, bytes(size), fin=False).serialize(mask=True))
                await (await talking.connection.ping())
                left -= size
        broken: list[ServiceError | OSError] = []
        await is_served(address, tell=lambda why, lately: broken.append(why))
        assert broken == []


async def test_a_client_that_sends_pings_and_never_reads_is_disconnected() -> None:
    async with small() as (_, address), talk(address, max_queue=1) as (talking, _):
        transport = talking.connection.transport
        transport.pause_reading()
        pings = Frame(Opcode.PING, bytes(125)).serialize(mask=True) * 1000
        for _ in range(1000):
            transport.write(pings)
            await asyncio.sleep(0)
            if transport.is_closing():
                break
        async with asyncio.timeout(30):
            while not transport.is_closing():
                await asyncio.sleep(0.02)
        await is_served(address)


async def test_the_memory_for_http_bodies_is_bounded() -> None:
    body = json.dumps({"input_prefix": "x" * 1_500_000, "input_suffix": "", "n_predict": 1}).encode()

    def post(address: str) -> tuple[int, str]:
        with urllib.request.urlopen(urllib.request.Request(f"http://{address}/infill", body)) as answer:
            return answer.status, answer.read().decode()

    async with small() as (_, address):
        with pytest.raises(urllib.error.HTTPError) as refused:
            await asyncio.to_thread(post, address)
        with refused.value as answer:
            assert answer.status == 503
            assert int(answer.headers["Retry-After"]) > 0
            assert b"there is no room for more" in answer.read()
        await is_served(address)


class Transport(asyncio.Transport):
    """A transport, of which only the socket is known."""


@pytest.mark.parametrize(
    ("family", "most"), [(socket.AF_INET, 250), (socket.AF_UNIX, 500)], ids=["a stranger", "an own client"]
)
async def test_bodies_of_strangers_leave_half_to_those_of_own_clients(family: int, most: int) -> None:
    pool, taken = Pool(1000), 0

    async def receive() -> Message:
        return {"type": "http.request", "body": bytes(10), "more_body": True}

    async def send(message: Message) -> None:
        raise AssertionError

    async def reads(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal taken
        with contextlib.suppress(ServiceError):
            while await receive():
                taken += 10

    with socket.socket(family) as accepted:
        PRESENT.set(Connections(10, OwnFirst()).add(Transport({"socket": accepted})))
        await charging(reads, pool)({"type": "http"}, receive, send)
    assert taken == most
    assert pool.held == 0


async def test_the_own_editor_is_served_while_strangers_take_what_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "most_connections", lambda: 40)
    async with live(token_of_start=TOKEN, max_sessions=16, max_queued=4) as (service, address):
        url = f"http://{address}"
        with crowded(url, Crowd(sessions=30, sockets=60, edits=20_000), 60.0) as strangers:
            while service.status().sessions < 14:  # all that are not reserved
                await asyncio.sleep(0.05)
            assert await type_on(Address(url, TOKEN), 2.0)
            assert sum(session.greeted and not session.trusted for session in service.sessions) <= 14
            assert strangers.poll() is None
