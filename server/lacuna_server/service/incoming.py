"""Charges incomplete incoming messages, which are buffered in memory, to a pool that all clients share.

Half of it is for own clients: strangers who begin messages and do not end them leave room for theirs.
"""

import asyncio
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from lacuna_server.service.connections import Connection, Connections, begin, present
from lacuna_server.wire.documents import Pool, Share
from lacuna_server.wire.protocol import ServiceError

# A client that reads nothing gets so many answers to its pings.
MAX_UNREAD_PONGS = 100
# A message may come in so many fragments: each takes memory beside its bytes, and may be empty.
MAX_FRAGMENTS = 4096


class Bodies:
    """Middleware that charges the bodies of HTTP requests to the pool until the requests are answered.

    Requests for which the pool has no room are refused.
    """

    def __init__(self, app: ASGIApp, pool: Pool) -> None:
        self._app = app
        self._pool = pool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; reading its body raises ServiceError ``overloaded`` where the pool has no room."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        share = self._pool.share()

        async def taken() -> Message:
            message = await receive()
            _take(share, len(message.get("body", b"")), present())
            return message

        try:
            await self._app(scope, taken, send)
        finally:
            share.give_back()


def http_protocol(connections: Connections) -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol, which counts its connections and closes those on which no request arrives.

    Once a connection becomes a websocket, it is the websocket's protocol that ends it. A websocket has its own limits:
    the time until ``hello``, and pings.
    """

    class Counted(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._connection = connections.add(transport)
            self._connection.waits()

        def data_received(self, data: bytes) -> None:
            begin(self._connection)
            super().data_received(data)
            upgraded = self.transport.get_protocol() is not self
            if upgraded or (self.cycle is not None and not self.cycle.response_complete):
                self._connection.asked()
            else:
                self._connection.waits()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._connection.ended()

    return Counted


def websocket_protocol(pool: Pool) -> type[asyncio.Protocol]:
    """Return uvicorn's websocket protocol, with the bytes that it buffers charged to the pool.

    It buffers a message until it is complete. A connection for which the pool has no room is aborted, because an
    answer would have to wait for the rest of the message.
    """

    class Bounded(WebSocketsSansIOProtocol):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._share = pool.share()
            self._num_pongs = 0
            self._connection = present()

        def data_received(self, data: bytes) -> None:
            try:
                _take(self._share, len(data), self._connection)
            except ServiceError:
                return self.transport.abort()
            super().data_received(data)

        async def receive(self) -> ASGIReceiveEvent:
            event = await super().receive()
            if self.queue.empty():  # only the beginning of the next message is still buffered
                self._share.take(min(len(self.conn.reader.buffer) - self._share.held, 0))
            return event

        async def send(self, message: ASGISendEvent) -> None:
            """Send, and wait until the client has read nearly all of it; until then the sender holds the message."""
            await super().send(message)
            await self.writable.wait()

        def handle_cont(self, event: Frame) -> None:
            if len(self.frames) >= MAX_FRAGMENTS:
                return self.transport.abort()
            super().handle_cont(event)

        def handle_ping(self) -> None:
            self._num_pongs = 0 if self.writable.is_set() else self._num_pongs + 1
            if self._num_pongs > MAX_UNREAD_PONGS:
                return self.transport.abort()
            super().handle_ping()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._share.give_back()
            if self._connection is not None:
                self._connection.ended()

    return Bounded


def _take(share: Share, num_bytes: int, connection: Connection | None) -> None:
    """Charge bytes of a connection, whose client may have shown meanwhile that it is an own one; as ``Share.take``.

    Where connections are not counted, all are own ones.
    """
    if connection is None or connection.is_own:
        share.trust()
    share.take(num_bytes)
