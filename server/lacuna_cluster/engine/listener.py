"""The engine replica's side of the connections of ingresses: reads questions and writes the replies."""

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator, Callable

import msgspec
import structlog

from lacuna_cluster.messages import QUESTION, Ask, Declined, Drop, Knock, Reply, framed, prompt
from lacuna_server.wire import frames

log = structlog.get_logger(__name__)

KNOCK_S = 5.0
MAX_KNOCK_BYTES = 1024

Answer = Callable[[Ask], AsyncIterator[Reply]]


class Listener:
    """Listens on a free port. Only who knows ``secret`` is answered."""

    def __init__(self, answer: Answer) -> None:
        self.secret = secrets.token_urlsafe(32)
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._visits: set[asyncio.Task[None]] = set()

    async def open(self, host: str) -> int:
        """Listen on an address, and return the port."""
        self._server = await asyncio.start_server(self._visit, host, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Close every connection; what runs is stopped."""
        if self._server is not None:
            self._server.close()
        for visit in list(self._visits):
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._visits.add(task)
        try:
            prompt(writer)
            await Visit(self._answer, writer).serve(reader, self.secret)
        except (OSError, asyncio.CancelledError):
            pass  # the ingress or this replica ends
        finally:
            self._visits.discard(task)
            writer.close()


class Visit:
    """One connection of an ingress."""

    def __init__(self, answer: Answer, writer: asyncio.StreamWriter) -> None:
        self._answer = answer
        self._writer = writer
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def serve(self, reader: asyncio.StreamReader, secret: str) -> None:
        """Answer until the connection ends; what then still runs is stopped."""
        try:
            async with asyncio.timeout(KNOCK_S):
                body = await frames.receive(reader, MAX_KNOCK_BYTES)
            knock = QUESTION.decode(body) if body is not None else None
        except (TimeoutError, msgspec.MsgspecError):  # a stranger
            return
        if not isinstance(knock, Knock) or not hmac.compare_digest(knock.secret, secret):
            return
        try:
            while (body := await frames.receive(reader)) is not None:
                match QUESTION.decode(body):
                    case Ask() as ask:
                        self._tasks[ask.id] = task = asyncio.create_task(self._reply(ask))
                        task.add_done_callback(lambda done, id=ask.id: self._tasks.pop(id, None))  # type: ignore[misc]
                    case Drop(id=id) if id in self._tasks:
                        self._tasks[id].cancel()
        finally:
            for task in self._tasks.values():
                task.cancel()

    async def _reply(self, ask: Ask) -> None:
        try:
            async for reply in self._answer(ask):
                self._writer.write(framed(reply))
                await self._writer.drain()  # a slow reader gets fewer snapshots: only the latest one waits
        except OSError:
            pass  # the ingress has gone
        except Exception as error:  # without an answer the ingress would wait
            log.error("answer_failed", fault=type(error).__name__)
            message = f"the engine replica failed with {type(error).__name__}"
            self._writer.write(framed(Declined(ask.id, "internal", message, 0)))
