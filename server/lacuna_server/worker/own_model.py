"""The model of this machine: a scheduler with the one worker process that it keeps running."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
import structlog

from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import PassCost, Setup, Submission
from lacuna_server.wire.protocol import Status
from lacuna_server.worker.process import WorkerProcess
from lacuna_server.worker.scheduler import Finished, Scheduler, Ticket

log = structlog.get_logger(__name__)

WATCH_S = 1.0


class Submitter(Protocol):
    """Takes requests."""

    observers: list[Callable[[Finished], None]]

    def submit(self, submission: Submission) -> Ticket:
        """Queue a request. Raises ServiceError where it is refused."""
        ...

    def status(self) -> Status:
        """Return the state of model and queue."""
        ...


class Model(Protocol):
    """What fills the requests of a service."""

    @property
    def reads_workspaces(self) -> bool:
        """Whether it reads files of the folder that a request names as its workspace."""
        ...

    @property
    def scheduler(self) -> Submitter:
        """Takes the requests."""
        ...

    @property
    def num_restarts(self) -> int:
        """How often a model process was started again."""
        ...

    @property
    def pass_costs(self) -> Sequence[PassCost]:
        """What passes took when the model was loaded, where that is known here."""
        ...

    def start(self) -> None:
        """Begin to load the model."""
        ...

    def retry(self) -> None:
        """Try again to load a model that could not be loaded: the cause may have been removed since."""
        ...

    async def finish(self, grace_s: float) -> None:
        """Take no more requests; let running ones end within ``grace_s`` seconds, and refuse the others."""
        ...

    async def stop(self) -> None:
        """End the model for good."""
        ...


class OwnModel:
    """A model in a worker process of this machine. A worker that crashes or hangs is started again."""

    reads_workspaces = True

    def __init__(self, config: ServerConfig) -> None:
        self.scheduler = Scheduler(config)
        self._worker = WorkerProcess(
            msgspec.convert(config, Setup, from_attributes=True),
            self.scheduler,
            load_timeout_s=config.load_timeout_s,
        )
        self._timeout_s = config.worker_timeout_s
        self._watch: asyncio.Task[None] | None = None

    @property
    def num_restarts(self) -> int:
        """How often the worker process was started again."""
        return self._worker.num_crashes

    @property
    def pass_costs(self) -> Sequence[PassCost]:
        """What passes took when the model was loaded."""
        return self.scheduler.pass_costs

    @property
    def pid(self) -> int | None:
        """The id of the worker process while it runs."""
        return self._worker.pid

    def start(self) -> None:
        """Start the worker and the watch over it."""
        self.scheduler.attach(self._worker)
        self._worker.start()
        self._watch = asyncio.create_task(self._watch_worker())

    def retry(self) -> None:
        """Try again to load a model that could not be loaded."""
        if self.scheduler.status().state == "failed":
            self.scheduler.again()
            self._worker.start()

    async def finish(self, grace_s: float) -> None:
        """Take no more requests; let running ones end within ``grace_s`` seconds, and refuse the others."""
        await self.scheduler.close(grace_s)

    async def stop(self) -> None:
        """End the worker."""
        if self._watch is not None:
            self._watch.cancel()
        await self._worker.stop()

    async def _watch_worker(self) -> None:
        """Kill a worker that has work and has sent nothing for ``worker_timeout_s``; it is then restarted."""
        while True:
            await asyncio.sleep(WATCH_S)
            silent_s = self.scheduler.silent_s(self._worker.last_heard)
            if silent_s > self._timeout_s > 0:
                self._worker.kill()
                log.error("worker_stuck", silent_s=round(silent_s, 1))
