"""An engine replica: holds one or several models, each in a worker process, and answers the questions of ingresses."""

import asyncio
from collections.abc import AsyncGenerator

import msgspec

from lacuna_cluster.links import Answered, Ask, EngineFigures, Reply, Shown
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import Error, ServiceError
from lacuna_server.worker.process import OwnModel
from lacuna_server.worker.tickets import Finished, Ticket, Waiting

POLL_S = 0.05


class ModelLoadError(Exception):
    """The model cannot be loaded; the message says why."""


class HeldModel(OwnModel):
    """A loaded model of a replica."""

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config)
        self.loop = asyncio.get_running_loop()
        self.unloaded = False

    async def load(self) -> None:
        """Load the model. Raises ModelLoadError where that fails for good."""
        self.start()
        while (status := self.status()).state != "ready":
            if status.state == "failed":
                await self.stop()
                raise ModelLoadError(status.detail)
            await asyncio.sleep(POLL_S)

    async def answer(self, ask: Ask) -> AsyncGenerator[Reply]:
        """Fill a request; yields every reply. Leaving the iterator cancels the request."""
        ticket: Ticket | None = None
        try:
            ticket = self.submit(ask.submission)
            async for event in ticket.events():
                yield event if isinstance(event, Waiting) else Shown(event)
            result = await ticket.result()
            yield Answered(result, ticket.finished or Finished(result.status, 0.0))
        except ServiceError as error:
            yield Error(error.code, str(error), retry_after_ms=error.retry_after_ms)
        finally:
            if ticket is not None:
                ticket.cancel()

    async def unload(self) -> None:
        """End the model's process; running requests are started again elsewhere by their ingress."""
        self.unloaded = True
        await self.finish(0.0)
        await self.stop()

    def __del__(self) -> None:
        """Unload the model: Ray Serve calls this, in a thread of its own, where another model takes its place."""
        if not self.unloaded and self.loop.is_running():
            asyncio.run_coroutine_threadsafe(self.unload(), self.loop)


class Replica:
    """The class of an engine replica, without Ray.

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

    def report(self) -> EngineFigures:
        """Return what the replica reports of itself."""
        return EngineFigures(self._name, {name: held.status() for name, held in self.held.items()})

    async def finish(self, grace_s: float) -> None:
        """Let running requests end within ``grace_s`` seconds and refuse the others; then end the models."""
        await asyncio.gather(*(held.finish(grace_s) for held in self.held.values()))
        await asyncio.gather(*(held.unload() for held in self.held.values()))

    def check_health(self) -> None:
        """Raise ModelLoadError where a model has failed for good, so that Ray Serve replaces the replica."""
        for status in self.report().statuses.values():
            if status.state == "failed":
                raise ModelLoadError(status.detail)
