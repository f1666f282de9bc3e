"""The ingress: our web application in a replica of Ray Serve, without Ray.

``Fleet`` is what it sees of the engine replicas and of the other ingresses.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lacuna_cluster.ingress import exposition
from lacuna_cluster.ingress.loads import LOADS
from lacuna_cluster.ingress.remote_scheduler import RemoteScheduler
from lacuna_cluster.messages import Ask, EngineFigures, IngressFigures, Reply
from lacuna_cluster.people.users import Usage, User, UserGuard
from lacuna_server.daemon.app import build
from lacuna_server.http.metrics import Metrics
from lacuna_server.http.shapes.other import Model, Models, model_of
from lacuna_server.service.incoming import Bodies
from lacuna_server.service.service import Service
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.documents import Pool
from lacuna_server.wire.protocol import ServiceError, Status

log = structlog.get_logger(__name__)

TICK_S = 1.0
# So many ticks in a row without this ingress among the running ones: it is being drained.
MISSED_TICKS = 2
GOING = "this ingress is being replaced; connect again"


class Fleet(Protocol):
    """The other replicas of the cluster."""

    def ask(self, ask: Ask) -> AsyncGenerator[Reply]:
        """Send a question to an engine replica, and yield the replies. Raises an exception where it is lost."""
        ...

    async def engines(self) -> list[EngineFigures]:
        """Return the figures of all engine replicas that answer in time."""
        ...

    async def ingresses(self) -> list[IngressFigures]:
        """Return the figures of all running ingresses that answer in time, this one included."""
        ...

    async def metrics(self) -> list[tuple[str, bytes]]:
        """Return name and metrics of all running ingresses that answer in time, this one included."""
        ...


@dataclass(frozen=True)
class Identity:
    """How an ingress learns who its callers are; see ``UserGuard``."""

    user_header: str = ""
    proxy_token: str = ""


class Known:
    """The engine replicas as they were at the last look, and the way to ask them."""

    def __init__(self, fleet: Fleet, models: Sequence[str]) -> None:
        self._fleet = fleet
        self._models = models
        self.figures: list[EngineFigures] = []

    def ask(self, ask: Ask) -> AsyncGenerator[Reply]:
        """Send a question. Raises ServiceError ``bad_request`` for an unknown model."""
        model = ask.model or self._models[0]
        if model not in self._models:
            raise ServiceError("bad_request", f"there is no model {model}; there are {', '.join(self._models)}")
        return self._fleet.ask(msgspec.structs.replace(ask, model=model))

    def learn(self, figures: list[EngineFigures]) -> None:
        """Take over what the replicas report."""
        self.figures = figures
        for one in figures:
            LOADS.reported(one.replica, one.num_requests)
        LOADS.keep_only({one.replica for one in figures})

    def status(self) -> Status:
        """Return the state of the first model: ready where a replica is, with the load of all models."""
        statuses = [status for one in self.figures for status in one.statuses.values()]
        first = [one.statuses[self._models[0]] for one in self.figures if self._models[0] in one.statuses]
        order = ("ready", "restarting", "loading", "failed")
        best = min(first, key=lambda status: order.index(status.state), default=Status("", "loading", 0.0))
        return msgspec.structs.replace(
            best,
            model=self._models[0],
            queued=sum(status.queued for status in statuses),
            running=sum(status.running for status in statuses),
        )


class RemoteModel:
    """The engine replicas as the model of the ingress's service."""

    reads_workspaces = False
    pass_costs = ()

    def __init__(self, scheduler: RemoteScheduler, known: Known) -> None:
        self.scheduler = scheduler
        self._known = known

    @property
    def num_restarts(self) -> int:
        """How often the replicas that run now have started a model process again."""
        return sum(figures.restarts for figures in self._known.figures)

    def start(self) -> None:
        """Do nothing: Ray Serve starts the replicas."""

    def retry(self) -> None:
        """Do nothing: Ray Serve replaces a replica whose model has failed."""

    async def finish(self, grace_s: float) -> None:
        """Take no more requests; let running ones end within ``grace_s`` seconds."""
        await self.scheduler.close(grace_s)

    async def stop(self) -> None:
        """Do nothing: Ray Serve ends the replicas."""


class Ingress:
    """One ingress. ``start`` begins to look at the other replicas every ``TICK_S`` seconds."""

    def __init__(
        self, name: str, config: ServerConfig, fleet: Fleet, models: Sequence[str], identity: Identity
    ) -> None:
        self._name = name
        self._fleet = fleet
        self._models = models
        self._identity = identity
        self._people: dict[str, User] = {}
        self._known = Known(fleet, models)
        self._missed = 0
        self._seen = False
        self._draining = False
        self._watch: asyncio.Task[None] | None = None
        # The registry exists before the service, because the scheduler counts in it.
        self._usage = Usage(self._people, registry := exposition.registry())
        self.scheduler = RemoteScheduler(config, self._known, self._usage)
        self.service = Service(config, RemoteModel(self.scheduler, self._known))
        self._metrics = Metrics(self.service, registry)
        exposition.add_restarts(registry, lambda: self.scheduler.num_restarted)
        exposition.add_engines(registry, lambda: self._known.figures)

    def application(self) -> ASGIApp:
        """Return the web application."""
        guard = Middleware(
            UserGuard,
            config=self.service.config,
            people=self._people,
            user_header=self._identity.user_header,
            proxy_token=self._identity.proxy_token,
        )
        app: Starlette = build(
            self.service,
            guard=guard,
            metrics=self._metrics,
            instead=[
                Route("/metrics", self._show_metrics),
                Route("/v1/models", self._list_models),
                Route("/v1/models/{name:path}", self._show_model),
            ],
        )
        return Bodies(app, Pool(self.service.config.max_held_bytes // 2))

    def start(self) -> None:
        """Begin to look at the other replicas."""
        self.service.start()
        self._watch = asyncio.create_task(self._look_again_and_again())

    def set_people(self, people: Mapping[str, User]) -> None:
        """Replace the users from now on; connections that are open stay."""
        self._people.clear()
        self._people.update(people)
        log.info("users", number=len(people))

    def figures(self) -> IngressFigures:
        """Return what the other ingresses need to know."""
        return self._usage.figures(self._name)

    def metrics(self) -> bytes:
        """Return this ingress's own metrics in Prometheus' text format."""
        return self._metrics.text()[0]

    async def close(self) -> None:
        """End: refuse what is under way, and say goodbye."""
        if self._watch is not None:
            self._watch.cancel()
        await self.service.close()

    async def _look_again_and_again(self) -> None:
        while True:
            began = time.monotonic()
            try:
                self._known.learn(await self._fleet.engines())
            except Exception:  # of Ray: there is no replica now
                self._known.learn([])
            with contextlib.suppress(Exception):
                self._look_at_ingresses(await self._fleet.ingresses())
            await asyncio.sleep(max(0.0, began + TICK_S - time.monotonic()))

    def _look_at_ingresses(self, running: Sequence[IngressFigures]) -> None:
        """Learn of the others' use; where this ingress is no longer among them, send its clients to the others."""
        names = {figures.replica for figures in running}
        self._usage.learn(figures for figures in running if figures.replica != self._name)
        self._seen = self._seen or self._name in names
        self._missed = 0 if self._name in names or not names else self._missed + 1
        if self._seen and self._missed >= MISSED_TICKS and not self._draining:
            self._draining = True
            log.info("draining", connections=len(self.service.connections))
        if self._draining:
            for connection in list(self.service.connections):
                connection.leave(GOING, finish=True)

    async def _show_metrics(self, request: Request) -> Response:
        """Return the metrics of all ingresses, and through each of them those of the engine replicas."""
        parts = await _or_nothing(self._fleet.metrics)
        if self._name not in dict(parts):
            parts.append((self._name, self.metrics()))
        return Response(exposition.merged(parts), media_type=exposition.CONTENT_TYPE)

    async def _list_models(self, request: Request) -> Response:
        body = msgspec.json.encode(Models([Model(name) for name in self._models]))
        return Response(body, media_type="application/json")

    async def _show_model(self, request: Request) -> Response:
        return model_of(self._models, request.path_params["name"])


async def _or_nothing(call: Callable[[], Awaitable[list[tuple[str, bytes]]]]) -> list[tuple[str, bytes]]:
    try:
        return await call()
    except Exception:  # of Ray: nobody answers
        return []
