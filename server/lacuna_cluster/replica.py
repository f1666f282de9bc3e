"""An engine replica: holds one or several models, each in a worker process, and answers the questions of ingresses."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator

import msgspec

from lacuna_cluster.links import Answered, Ask, Declined, EngineFigures, Reply, Shown, Told
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import ServiceError
from lacuna_server.worker.process import OwnModel
from lacuna_server.worker.tickets import Finished, Ticket, Waiting

POLL_S = 0.05
SOON_S = 0.03
# The time to a first step is the mean over so many requests, and 0 after so long without one.
RECENT, FORGET_S = 50, 30.0


class ModelLoadError(Exception):
    """The model cannot be loaded; the message says why."""


class HeldModel:
    """A loaded model of a replica."""

    def __init__(self, config: ServerConfig) -> None:
        self.own = OwnModel(config)
        self.loop = asyncio.get_running_loop()
        self.unloaded = False
        self._first_steps: deque[tuple[float, float]] = deque(maxlen=RECENT)
        self.own.scheduler.observers.append(self._observe)

    async def load(self) -> None:
        """Load the model. Raises ModelLoadError where that fails for good."""
        self.own.start()
        while (status := self.own.scheduler.status()).state != "ready":
            if status.state == "failed":
                await self.own.stop()
                raise ModelLoadError(status.detail)
            await asyncio.sleep(POLL_S)

    async def answer(self, ask: Ask) -> AsyncGenerator[Reply]:
        """Fill a request; yields every reply. Leaving the iterator cancels the request."""
        try:
            ticket = self.own.scheduler.submit(ask.submission)
        except ServiceError as error:
            yield Declined(ask.id, error.code, str(error), error.retry_after_ms)
            return
        try:
            async for event in ticket.events():
                if not isinstance(event, Waiting):
                    yield Shown(ask.id, event)
                elif not await self._ends_soon(ticket, ask, event):
                    yield Told(ask.id, event)
            yield await self._end(ask.id, ticket)
        finally:
            ticket.cancel()

    async def _ends_soon(self, ticket: Ticket, ask: Ask, event: Waiting) -> bool:
        """Return whether the answer follows at once on the news that the request runs: that saves a message."""
        if event.state != "running" or ask.submission.snapshots:
            return False
        with contextlib.suppress(TimeoutError, ServiceError):
            async with asyncio.timeout(SOON_S):
                await ticket.result()
        return ticket.ended

    async def _end(self, id: int, ticket: Ticket) -> Reply:
        try:
            result = await ticket.result()
        except ServiceError as error:
            return Declined(id, error.code, str(error), error.retry_after_ms)
        finished = ticket.finished or Finished(result.status, 0.0)
        return Answered(id, result, finished.waited_s, finished.busy_s, finished.steps)

    def _observe(self, finished: Finished) -> None:
        if finished.steps:
            self._first_steps.append((time.monotonic(), finished.waited_s + finished.busy_s / finished.steps))

    @property
    def first_snapshot_s(self) -> float:
        """The mean time until the first step of the recent requests, in seconds."""
        since = time.monotonic() - FORGET_S
        recent = [seconds for at, seconds in self._first_steps if at > since]
        return sum(recent) / len(recent) if recent else 0.0

    async def unload(self) -> None:
        """End the model's process; running requests are started again elsewhere by their ingress."""
        self.unloaded = True
        await self.own.finish(0.0)
        await self.own.stop()

    def __del__(self) -> None:
        """Unload the model: Ray Serve calls this, in a thread of its own, where another model takes its place."""
        if not self.unloaded and self.loop.is_running():
            asyncio.run_coroutine_threadsafe(self.unload(), self.loop)


class Replica:
    """The engine deployment's class, without Ray.

    ``config`` is that of the first model in ``names``; the others have the same one with their own name.
    """

    def __init__(self, config: ServerConfig, names: tuple[str, ...], name: str) -> None:
        self._config = config
        self._names = names
        self._name = name
        self._held: dict[str, HeldModel] = {}

    async def hold(self, model: str) -> HeldModel:
        """Load a model that the deployment serves. Raises ModelLoadError."""
        if model not in self._names:
            raise ModelLoadError(f"no model {model!r} is served here")
        held = HeldModel(msgspec.structs.replace(self._config, model=model))
        await held.load()
        self._held[model] = held
        return held

    @property
    def held(self) -> dict[str, HeldModel]:
        """The models that are loaded now, by name."""
        return {name: held for name, held in self._held.items() if not held.unloaded}

    def figures(self) -> EngineFigures:
        """Return what the replica reports of itself."""
        statuses = {name: held.own.scheduler.status() for name, held in self.held.items()}
        restarts = sum(held.own.num_restarts for held in self.held.values())
        return EngineFigures(self._name, statuses, restarts, self.first_snapshot_s)

    @property
    def first_snapshot_s(self) -> float:
        """The longest of the models' mean times until a first step, in seconds."""
        return max((held.first_snapshot_s for held in self.held.values()), default=0.0)

    async def finish(self, grace_s: float) -> None:
        """Let running requests end within ``grace_s`` seconds and refuse the others; then end the models."""
        await asyncio.gather(*(held.own.finish(grace_s) for held in self.held.values()))
        await asyncio.gather(*(held.unload() for held in self.held.values()))

    def check(self) -> None:
        """Raise ModelLoadError where a model has failed for good, so that Ray Serve replaces the replica."""
        for held in self.held.values():
            status = held.own.scheduler.status()
            if status.state == "failed":
                raise ModelLoadError(status.detail)
