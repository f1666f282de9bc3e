"""A service in this process, on a free port and with a scripted worker, and a plain websocket client for it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from socket import socket
from typing import Any, TypeVar

import msgspec
import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from lacuna_model.core.params import DecodeOptions, Region
from lacuna_server.client.client import Client
from lacuna_server.daemon.app import build, web_server
from lacuna_server.daemon.serving import listen
from lacuna_server.service.service import Service
from lacuna_server.wire import protocol
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import ClientMessage, Hello, Infill, Open, Result, ServerMessage, Welcome

M = TypeVar("M", bound=ServerMessage)
TIMEOUT_S = 30
# The time that unfinished responses have at the end.
LAST_S = 3


@asynccontextmanager
async def live(*, token_of_start: str = "", **config: Any) -> AsyncIterator[tuple[Service, str]]:
    """Yield the service and its address, ``127.0.0.1:PORT``. Its own clients send ``token_of_start`` as their token."""
    settings = ServerConfig(**({"engine": "scripted_engine:load", "port": 0, "shutdown_grace_s": 0.2} | config))
    service = Service(settings)
    listener = listen(settings)
    service.model.start()
    async with listening(web_server(build(service, token_of_start), settings), listener):
        try:
            yield service, f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            await service.close()


@asynccontextmanager
async def listening(server: uvicorn.Server, *listeners: socket) -> AsyncIterator[int]:
    """Run a web server, and yield its port. It ends with its last connection, without the pauses that uvicorn makes."""
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(list(listeners) or None)
    await server.on_tick(0)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        for one in server.servers:
            one.close()
        for connection in list(server.server_state.connections):
            connection.shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                while server.server_state.connections or server.server_state.tasks:
                    await asyncio.sleep(0.005)
        for listener in listeners:
            listener.close()


class Talk:
    """A websocket that sends and receives the messages of the protocol one by one."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._subprotocol = connection.subprotocol or protocol.JSON

    async def send(self, *messages: ClientMessage) -> None:
        for message in messages:
            await self.connection.send(protocol.encode(message, self._subprotocol))

    async def receive(self, kind: type[M]) -> M:
        """Receive the next message of a kind. Messages of other kinds are skipped."""
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                message = protocol.decode_server(await self.connection.recv())
                if isinstance(message, kind):
                    return message

    async def receive_all_until(self, kind: type[M]) -> list[ServerMessage]:
        """Receive all messages up to the next one of a kind."""
        heard: list[ServerMessage] = []
        async with asyncio.timeout(TIMEOUT_S):
            while not heard or not isinstance(heard[-1], kind):
                heard.append(protocol.decode_server(await self.connection.recv()))
        return heard


@asynccontextmanager
async def talk(
    address: str, *, session: str = "", subprotocol: str = protocol.MSGPACK, hello: bool = True, **options: Any
) -> AsyncIterator[tuple[Talk, Welcome]]:
    """Connect and exchange the greeting. Without ``hello``, no greeting is sent, and the welcome is empty."""
    url = f"ws://{address}/v1/ws"
    async with connect(url, subprotocols=[Subprotocol(subprotocol)], proxy=None, **options) as connection:
        talking = Talk(connection)
        welcome = Welcome("")
        if hello:
            await talking.send(Hello("test", session))
            welcome = await talking.receive(Welcome)
        yield talking, welcome


def opened(uri: str, text: str = "text", version: int = 1) -> Open:
    return Open(uri, text, version)


def infill(
    id: str, uri: str, *, version: int = 1, steps: int = 1, step_s: float = 0.0, at: Sequence[int] = (0,), **more: Any
) -> Infill:
    """A request that the scripted engine fills in ``steps`` steps of ``step_s`` seconds each."""
    regions = tuple(Region(offset, offset, max_tokens=steps) for offset in at)
    options = DecodeOptions(temperature=step_s)
    return msgspec.structs.replace(Infill(id, uri, version, regions, options=options), **more)


async def fill(client: Client, uri: str = "a", **more: Any) -> Result:
    """Let the client of this project fill a document, with the arguments of ``infill``."""
    *_, last = [answer async for answer in client.infill(infill("", uri, **more))]
    assert isinstance(last, Result)
    return last
