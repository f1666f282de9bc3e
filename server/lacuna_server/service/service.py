"""The state that all routes share: configuration, model, sessions with their documents, and feedback counts."""

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from lacuna_server.service.own_first import Turns
from lacuna_server.wire.config import ServerConfig, is_loopback
from lacuna_server.wire.documents import RETRY_MS, Pool
from lacuna_server.wire.protocol import ServiceError, Status
from lacuna_server.worker.process import OwnModel
from lacuna_server.worker.scheduler import Model

if TYPE_CHECKING:
    from lacuna_server.service.websocket import Conversation

# One of so many sessions is for clients that send the token.
RESERVED = 8
# The time that connections have to read their last messages.
FAREWELL_S = 2.0


class Service:
    """The state of one server process, passed to every route.

    ``feedback`` counts feedback by kind.
    """

    def __init__(self, config: ServerConfig, model: Model | None = None) -> None:
        """By default the model is one of this machine."""
        self.config = config
        self.model = OwnModel(config) if model is None else model
        # For documents, requests and answers; the other half of the bytes is for incomplete messages.
        self.pool = Pool(config.max_held_bytes // 2)
        self.turns = Turns()
        self.sessions: set[Conversation] = set()
        self.feedback: Counter[str] = Counter()
        self._started = self._active = time.monotonic()

    async def close(self) -> None:
        """Let running requests finish within ``shutdown_grace_s``, refuse the others, say goodbye, stop the model."""
        await self.model.finish(self.config.shutdown_grace_s)
        deadline = time.monotonic() + FAREWELL_S
        for session in list(self.sessions):
            session.leave("the service is shutting down")
        while self.sessions and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        await self.model.stop()

    def status(self) -> Status:
        """Return the present state of the service."""
        return msgspec.structs.replace(
            self.model.status(),
            sessions=sum(session.greeted for session in self.sessions),
            documents=sum(len(session.documents) for session in self.sessions),
            uptime_s=time.monotonic() - self._started,
        )

    def check_room(self, *, trusted: bool) -> None:
        """Raise ServiceError ``overloaded`` where there are too many sessions for another one.

        An eighth of the room is for clients that send the token.
        """
        counted = sum(session.greeted and (trusted or not session.trusted) for session in self.sessions)
        if counted >= self.config.max_sessions - (0 if trusted else self.config.max_sessions // RESERVED):
            raise ServiceError("overloaded", f"{counted} sessions are open, no more are allowed", RETRY_MS)

    @property
    def reads_workspaces(self) -> bool:
        """Whether files of the clients' folders are read, which are on another machine where clients of others come."""
        return self.model.reads_workspaces and is_loopback(self.config.host)

    def touch(self) -> None:
        """Note that the service is in use now."""
        self._active = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds without a websocket connection, an HTTP request or work."""
        status = self.model.status()
        if self.sessions or status.queued or status.running:
            self.touch()
        return time.monotonic() - self._active
