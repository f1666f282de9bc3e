"""Bounds the open connections, so that those of strangers do not keep this user's own clients out.

A connection on which no request arrives is closed. If there are too many, the oldest one that has not sent the token
makes room for a new one.
"""

import asyncio
from collections import OrderedDict
from contextvars import ContextVar

# The time in which the next request has to arrive, from the connection on or from its first byte on.
SILENT_S = 10.0
# The descriptors that a process has left for files, pipes and connections that are being closed.
RESERVED = 128
MOST = 4096


class Connection:
    """An open connection, or one that has been counted out."""

    def __init__(self, connections: "Connections", transport: asyncio.BaseTransport) -> None:
        self._connections = connections
        self._transport = transport
        self._silence: asyncio.TimerHandle | None = None

    def waits(self) -> None:
        """Begin to wait for a request, if it does not wait already."""
        if self._silence is None:
            self._silence = asyncio.get_running_loop().call_later(SILENT_S, self.abort)

    def asked(self) -> None:
        """Note that a request has arrived."""
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def trust(self) -> None:
        """Keep the connection, since its client has sent the token."""
        self._connections.trust(self)

    def abort(self) -> None:
        """Close the connection at once."""
        self.ended()
        if isinstance(self._transport, asyncio.WriteTransport):
            self._transport.abort()

    def ended(self) -> None:
        """Note that the connection is closed."""
        self.asked()
        self._connections.forget(self)


class Connections:
    """All open connections, at most ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._strangers: OrderedDict[Connection, None] = OrderedDict()
        self._own: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._strangers) + len(self._own)

    def add(self, transport: asyncio.BaseTransport) -> Connection:
        """Return a new connection, for which the oldest one of a stranger is closed if there are too many."""
        added = Connection(self, transport)
        self._strangers[added] = None
        if len(self) > self._most:
            next(iter(self._strangers)).abort()
        return added

    def trust(self, connection: Connection) -> None:
        """Keep a connection, since its client has sent the token."""
        if connection in self._strangers:
            del self._strangers[connection]
            self._own.add(connection)

    def forget(self, connection: Connection) -> None:
        """Count a connection out."""
        self._strangers.pop(connection, None)
        self._own.discard(connection)


# The connection of the present request.
_PRESENT: ContextVar[Connection | None] = ContextVar("connection", default=None)


def begin(connection: Connection) -> None:
    """Note for the tasks that are started from here on whose request they answer."""
    _PRESENT.set(connection)


def present() -> Connection | None:
    """Return the connection of the present request, None where connections are not counted."""
    return _PRESENT.get()


def trust() -> None:
    """Keep the connection of the present request, since its client has sent the token."""
    if (connection := _PRESENT.get()) is not None:
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
