"""Bounds the open connections, and serves this user's own ones first, so that strangers do not keep them out.

A connection on which no request arrives is closed. If there are too many, the oldest one that has not sent the token
makes room for a new one.
"""

import asyncio
import socket
from collections import OrderedDict
from contextvars import ContextVar

from lacuna_server.service.own_first import NoPreference, Preference

# The descriptors that a process has left for files, pipes and connections that are being closed.
RESERVED = 128
MOST = 4096
# So much of what a stranger sends is read at once, in which there may be a thousand frames of a websocket.
READ_AT_ONCE = 8 * 1024
OWN_READ_AT_ONCE = 256 * 1024  # asyncio's default


class Connection:
    """An open connection, or one that has been counted out; ``is_own``: that of an own client."""

    def __init__(self, connections: "Connections", transport: asyncio.BaseTransport) -> None:
        self._connections = connections
        self._transport = transport
        self.descriptor: int = transport.get_extra_info("socket").fileno()
        self.is_own = False
        self._silence: asyncio.TimerHandle | None = None

    def waits(self) -> None:
        """Begin to wait for a request, if it does not wait already."""
        if self._silence is None and (silent_s := self._connections.silent_s):
            self._silence = asyncio.get_running_loop().call_later(silent_s, self.abort)

    def asked(self) -> None:
        """Note that a request has arrived."""
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def read_at_most(self, num_bytes: int) -> None:
        """Read so much at once. By default asyncio takes 256 kB, which are tens of thousands of the shortest frames."""
        self._transport.max_size = num_bytes  # type: ignore[attr-defined]  # its transports of sockets have it

    def trust(self) -> None:
        """Keep the connection and serve it first, since its client has sent the token or uses the private socket."""
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
    """All open connections, at most ``most``, of which ``preference`` serves the own ones first.

    The next request has to arrive within ``silent_s`` seconds, from the connection on or from its first byte on
    (0: any).
    """

    def __init__(self, most: int, preference: Preference | None = None, *, silent_s: float = 0.0) -> None:
        self.silent_s = silent_s
        self._most = most
        self._preference = preference or NoPreference()
        self._strangers: OrderedDict[Connection, None] = OrderedDict()
        self._own: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._strangers) + len(self._own)

    def add(self, transport: asyncio.BaseTransport) -> Connection:
        """Return a new connection, for which the oldest one of a stranger is closed if there are too many.

        Where all others are own ones, that is the new one itself.
        """
        added = Connection(self, transport)
        self._strangers[added] = None
        if is_private(transport.get_extra_info("socket")):
            added.trust()
        else:
            self._preference.set_apart(added.descriptor)
            added.read_at_most(READ_AT_ONCE)
        if len(self) > self._most:
            next(iter(self._strangers), added).abort()
        return added

    def trust(self, connection: Connection) -> None:
        """Keep a connection and serve it first, since it is an own client's."""
        if connection in self._strangers:
            del self._strangers[connection]
            self._own.add(connection)
            connection.is_own = True
            self._preference.prefer(connection.descriptor)
            connection.read_at_most(OWN_READ_AT_ONCE)

    def forget(self, connection: Connection) -> None:
        """Count a connection out."""
        if connection in self._own or connection in self._strangers:
            self._preference.forget(connection.descriptor)
        self._strangers.pop(connection, None)
        self._own.discard(connection)


def is_private(listener: socket.socket) -> bool:
    """Whether only this user's own programs reach a socket: one with a path, in a folder of theirs."""
    return listener.family not in (socket.AF_INET, socket.AF_INET6)


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
