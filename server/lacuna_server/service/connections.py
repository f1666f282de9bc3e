"""Bounds the open connections, and the memory of what arrives on them.

A connection on which no request arrives is closed. If there are too many, the oldest one that has not sent the token
makes room for a new one. Incomplete messages, which are buffered in memory, are charged to a pool that all clients
share. Half of it is for own clients: strangers who begin messages and do not end them leave room for theirs.
"""

import asyncio
from contextvars import ContextVar
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from lacuna_server.service.own_first import OwnFirst, is_private
from lacuna_server.wire.documents import Pool, Share
from lacuna_server.wire.protocol import ServiceError

# The descriptors that a process has left for files, pipes and connections that are being closed.
RESERVED = 128
MOST = 4096
# So much of what a stranger sends is read at once, in which there may be a thousand frames of a websocket.
READ_AT_ONCE = 8 * 1024
OWN_READ_AT_ONCE = 256 * 1024  # asyncio's default
# A client that reads nothing gets so many answers to its pings.
MAX_UNREAD_PONGS = 100
# A message may come in so many fragments: each takes memory beside its bytes, and may be empty.
MAX_FRAGMENTS = 4096


class Connections:
    """All open connections, at most ``most``, of which ``own_first`` serves the own ones first.

    The next request has to arrive within ``silent_s`` seconds, from the connection on or from its first byte on
    (0: any).
    """

    def __init__(self, most: int, own_first: OwnFirst, *, silent_s: float = 0.0) -> None:
        self.own_first = own_first
        self.silent_s = silent_s
        self.open: dict[Connection, None] = {}  # the oldest one comes first
        self._most = most

    def add(self, transport: asyncio.BaseTransport) -> "Connection":
        """Return a new connection, for which the oldest one of a stranger is closed if there are too many.

        Where all others are own ones, that is the new one itself.
        """
        added = Connection(self, transport)
        if len(self.open) > self._most:
            next((one for one in self.open if not one.is_own), added).abort()
        return added


class Connection:
    """An open connection, or one that has been counted out; ``is_own``: that of an own client."""

    def __init__(self, connections: Connections, transport: asyncio.BaseTransport) -> None:
        self._connections = connections
        self._transport = transport
        self._descriptor: int = transport.get_extra_info("socket").fileno()
        self._silence: asyncio.TimerHandle | None = None
        self.is_own = False
        connections.open[self] = None
        if is_private(transport.get_extra_info("socket")):
            self.trust()
        else:
            connections.own_first.set_apart(self._descriptor)
            self._read_at_most(READ_AT_ONCE)

    def waits(self) -> None:
        """Begin to wait for a request, if it does not wait already."""
        if self._silence is None and (silent_s := self._connections.silent_s):
            self._silence = asyncio.get_running_loop().call_later(silent_s, self.abort)

    def asked(self) -> None:
        """Note that a request has arrived."""
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def trust(self) -> None:
        """Keep the connection and serve it first, since its client has sent the token or uses the private socket."""
        if self in self._connections.open and not self.is_own:
            self.is_own = True
            self._connections.own_first.prefer(self._descriptor)
            self._read_at_most(OWN_READ_AT_ONCE)

    def abort(self) -> None:
        """Close the connection at once."""
        self.ended()
        if isinstance(self._transport, asyncio.WriteTransport):
            self._transport.abort()

    def ended(self) -> None:
        """Count the connection out: it is closed."""
        self.asked()
        if self in self._connections.open:
            del self._connections.open[self]
            self._connections.own_first.forget(self._descriptor)

    def _read_at_most(self, num_bytes: int) -> None:
        """Read so much at once. By default asyncio takes 256 kB, which are tens of thousands of the shortest frames."""
        self._transport.max_size = num_bytes  # type: ignore[attr-defined]  # its transports of sockets have it


# The connection of the request that a task answers, and those that it starts; None where connections are not counted.
PRESENT: ContextVar[Connection | None] = ContextVar("connection", default=None)


def trust() -> None:
    """Keep the connection of the present request, since its client has sent the token."""
    if (connection := PRESENT.get()) is not None:
        connection.trust()


def most_connections() -> int:
    """Raise the limit of open files of this process where it may, and return how many connections it leaves room for.

    Usual limits are 1,024 for a process as it starts, and much more where it asks.
    """
    try:
        import resource
    except ImportError:  # Windows
        return MOST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = MOST + RESERVED if hard == unlimited else min(hard, MOST + RESERVED)
    if soft != unlimited and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MOST if soft == unlimited else max(1, min(MOST, soft - RESERVED))


def charging(app: ASGIApp, pool: Pool) -> ASGIApp:
    """Return an application that charges the bodies of HTTP requests to the pool until the requests are answered.

    Reading a body for which the pool has no room raises ServiceError ``overloaded``.
    """

    async def charged(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await app(scope, receive, send)
        share = pool.share()

        async def taken() -> Message:
            message = await receive()
            _take(share, len(message.get("body", b"")), PRESENT.get())
            return message

        try:
            await app(scope, taken, send)
        finally:
            share.give_back()

    return charged


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
            PRESENT.set(self._connection)
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
            self._connection = PRESENT.get()

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
