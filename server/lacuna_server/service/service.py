"""The service object that all routes share: configuration, scheduler, sessions, worker and feedback counts."""

import asyncio
import time
from collections import Counter

import msgspec
import structlog

from lacuna_server.service.sessions import Connection, Sessions
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Setup
from lacuna_server.wire.protocol import Feedback, Status
from lacuna_server.worker.process import WorkerProcess
from lacuna_server.worker.scheduler import Scheduler

log = structlog.get_logger(__name__)

WATCH_S = 1.0
# The time that connections have to read their last messages.
FAREWELL_S = 2.0


class Service:
    """The state of one server process, passed to every route.

    ``feedback`` counts feedback by kind; ``accepted_bytes`` sums the bytes that users took of partly accepted fills.
    """

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.scheduler = Scheduler(config)
        self.sessions = Sessions(config)
        self.connections: set[Connection] = set()
        self.feedback: Counter[str] = Counter()
        self.accepted_bytes = 0
        self.worker = WorkerProcess(
            Setup(config.engine, config.model, config.threads, config.device, config.cache_bytes, config.log_code),
            self.scheduler,
            load_timeout_s=config.load_timeout_s,
        )
        self._started = self._active = time.monotonic()
        self._watch: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the model worker and the watch over it."""
        self.scheduler.attach(self.worker)
        self.worker.start()
        self._watch = asyncio.create_task(self._watch_worker())

    def retry(self) -> None:
        """Try again to load a model that could not be loaded: the cause may have been removed since."""
        if self.scheduler.status().state == "failed":
            self.scheduler.again()
            self.worker.start()

    async def close(self) -> None:
        """Let running requests finish within ``shutdown_grace_s``, refuse the others, say goodbye, stop the worker."""
        await self.scheduler.close(self.config.shutdown_grace_s)
        deadline = time.monotonic() + FAREWELL_S
        for connection in list(self.connections):
            connection.leave("the service is shutting down", finish=True)
        while self.connections and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        if self._watch is not None:
            self._watch.cancel()
        await self.worker.stop()

    def status(self) -> Status:
        """Return the present state of the service."""
        return msgspec.structs.replace(
            self.scheduler.status(),
            sessions=len(self.sessions.attached),
            documents=self.sessions.num_documents,
            uptime_s=time.monotonic() - self._started,
        )

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

    async def _watch_worker(self) -> None:
        """Kill a worker that has work and has sent nothing for ``worker_timeout_s``; it is then restarted."""
        while True:
            await asyncio.sleep(WATCH_S)
            silent_s = self.scheduler.silent_s(self.worker.last_heard)
            if silent_s > self.config.worker_timeout_s > 0:
                self.worker.kill()
                log.error("worker_stuck", silent_s=round(silent_s, 1))
