"""The service object that all routes share: configuration, model, sessions and feedback counts."""

import asyncio
import time
from collections import Counter

import msgspec
import structlog

from lacuna_server.service.sessions import SessionConnection, Sessions
from lacuna_server.service.turns import Turns
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import Feedback, Status
from lacuna_server.wire.security import is_loopback
from lacuna_server.worker.own_model import Model, OwnModel

log = structlog.get_logger(__name__)

# The time that connections have to read their last messages.
FAREWELL_S = 2.0


class Service:
    """The state of one server process, passed to every route.

    ``feedback`` counts feedback by kind; ``accepted_bytes`` sums the bytes that users took of partly accepted fills.
    """

    def __init__(self, config: ServerConfig, model: Model | None = None) -> None:
        """By default the model is one of this machine."""
        self.config = config
        self.model = OwnModel(config) if model is None else model
        self.scheduler = self.model.scheduler
        self.sessions = Sessions(config)
        self.turns = Turns()
        self.connections: set[SessionConnection] = set()
        self.feedback: Counter[str] = Counter()
        self.accepted_bytes = 0
        self._started = self._active = time.monotonic()

    def start(self) -> None:
        """Begin to load the model."""
        self.model.start()

    def retry(self) -> None:
        """Try again to load a model that could not be loaded: the cause may have been removed since."""
        self.model.retry()

    async def close(self) -> None:
        """Let running requests finish within ``shutdown_grace_s``, refuse the others, say goodbye, stop the model."""
        await self.model.finish(self.config.shutdown_grace_s)
        deadline = time.monotonic() + FAREWELL_S
        for connection in list(self.connections):
            connection.leave("the service is shutting down", finish=True)
        while self.connections and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        await self.model.stop()

    def status(self) -> Status:
        """Return the present state of the service."""
        return msgspec.structs.replace(
            self.scheduler.status(),
            sessions=len(self.sessions.attached),
            documents=self.sessions.num_documents,
            uptime_s=time.monotonic() - self._started,
        )

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
        status = self.scheduler.status()
        if self.connections or status.queued or status.running:
            self.touch()
        return time.monotonic() - self._active

    def count_feedback(self, feedback: Feedback) -> None:
        """Count what the user did with a fill."""
        self.feedback[feedback.kind] += 1
        self.accepted_bytes += feedback.accepted_bytes
        log.info("feedback", kind=feedback.kind, candidate=feedback.candidate, accepted_bytes=feedback.accepted_bytes)
