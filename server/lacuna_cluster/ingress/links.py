"""The ingress's connections to engine replicas: one TCP connection for each, with all requests in it.

Ray says which replica and at which address; the questions and answers themselves go past Ray, because a call of an
actor costs some milliseconds of CPU on both sides, and a request needs several.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from typing import NamedTuple

import msgspec

from lacuna_cluster.ingress.loads import LOADS
from lacuna_cluster.messages import REPLY, Answered, Ask, Declined, Drop, Knock, Reply, framed, prompt
from lacuna_server.wire import frames

CONNECT_S = 2.0


class ReplicaAddress(NamedTuple):
    """The address of a replica, and the secret that it asks for."""

    replica: str
    host: str
    port: int
    secret: str


class Lost(ConnectionError):
    """The connection to a replica broke, or cannot be made."""


class Unreachable(Lost):
    """The connection cannot be made, so that nothing was asked."""


class Links:
    """The open connections by replica."""

    def __init__(self) -> None:
        self._links: dict[ReplicaAddress, Link] = {}
        self._opening: dict[ReplicaAddress, asyncio.Lock] = {}

    async def ask(self, where: ReplicaAddress, ask: Ask) -> AsyncGenerator[Reply]:
        """Send a question and yield the replies. Leaving the iterator stops the work on it. Raises Lost."""
        link = await self._link(where)
        LOADS.begin(where.replica)
        try:
            async for reply in link.ask(ask):
                yield reply
        except Lost:
            LOADS.lost(where.replica)
            raise
        finally:
            LOADS.end(where.replica)

    def close(self) -> None:
        """Close every connection."""
        for link in self._links.values():
            link.close()

    async def _link(self, where: ReplicaAddress) -> "Link":
        if (link := self._links.get(where)) is not None and not link.broken:
            return link
        async with self._opening.setdefault(where, asyncio.Lock()):
            if (link := self._links.get(where)) is None or link.broken:
                self._links = {there: one for there, one in self._links.items() if not one.broken}
                link = self._links[where] = await Link.open(where)
            return link


class Link:
    """A connection to one replica."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[Reply | None]] = {}
        self._reading = asyncio.create_task(self._read(reader))
        self.broken = False

    @classmethod
    async def open(cls, where: ReplicaAddress) -> "Link":
        """Connect. Raises Unreachable."""
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(where.host, where.port)
        except (OSError, TimeoutError) as error:
            LOADS.lost(where.replica)
            raise Unreachable(f"{where.replica}: {error}") from None
        LOADS.found(where.replica)
        prompt(writer)
        writer.write(framed(Knock(where.secret)))
        return cls(reader, writer)

    async def ask(self, ask: Ask) -> AsyncGenerator[Reply]:
        """Send a question and yield the replies, up to the one that ends it. Raises Lost."""
        id = next(self._ids)
        replies = self._waiting[id] = asyncio.Queue()
        ended = False
        try:
            self._write(msgspec.structs.replace(ask, id=id))
            while not ended:
                if (reply := await replies.get()) is None:
                    raise Lost("the connection to the replica broke")
                ended = isinstance(reply, Answered | Declined)
                yield reply
        finally:
            del self._waiting[id]
            if not ended and not self.broken:
                self._write(Drop(id))

    def close(self) -> None:
        """Close the connection."""
        self._reading.cancel()
        self._writer.close()

    def _write(self, message: Ask | Drop) -> None:
        if self.broken:
            raise Lost("the connection to the replica broke")
        self._writer.write(framed(message))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while (body := await frames.receive(reader)) is not None:
                reply = REPLY.decode(body)
                if (replies := self._waiting.get(reply.id)) is not None:
                    replies.put_nowait(reply)
        except OSError:
            pass  # it broke, as at the end of the stream
        finally:
            self.broken = True
            self._writer.close()
            for replies in self._waiting.values():
                replies.put_nowait(None)
