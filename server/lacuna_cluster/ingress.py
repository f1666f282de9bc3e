"""The ingress: our web application in a replica of Ray Serve, without Ray.

Metrics of all replicas are one answer: Prometheus' text of each ingress, with the label ``ingress``.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lacuna_cluster.links import IngressFigures
from lacuna_cluster.remote_scheduler import RemoteScheduler
from lacuna_cluster.users import Usage, User, UserGuard
from lacuna_server.daemon.app import build
from lacuna_server.http.metrics import Collected, Metrics
from lacuna_server.service.connections import charging
from lacuna_server.service.service import Service
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.documents import Pool

if TYPE_CHECKING:
    from lacuna_cluster.fleet import RayFleet

log = structlog.get_logger(__name__)

TICK_S = 1.0
# So many ticks in a row without this ingress among the running ones: it is being drained.
MISSED_TICKS = 2
GOING = "this ingress is being replaced; connect again"
ENGINE = "lacuna_engine_"


def of_engines(model: RemoteScheduler) -> Iterator[Metric]:
    """Yield what the engine replicas report, with the labels ``replica`` and ``model``, and what was lost with one."""
    labels = ["replica", "model"]
    families: tuple[GaugeMetricFamily | CounterMetricFamily, ...] = (
        GaugeMetricFamily(f"{ENGINE}ready", "Whether the model is loaded", labels=labels),
        GaugeMetricFamily(f"{ENGINE}queued", "Requests that wait in the replica", labels=labels),
        GaugeMetricFamily(f"{ENGINE}running", "Requests that run in the replica", labels=labels),
        CounterMetricFamily(f"{ENGINE}restarts", "Starts of a model process again", labels=labels),
    )
    for one in model.figures:
        for served, status in one.statuses.items():
            values = status.state == "ready", status.queued, status.running, status.restarts
            for family, value in zip(families, values, strict=True):
                family.add_metric([one.replica, served], float(value))
    yield from families
    help_text = "Requests that were started again because a replica was lost"
    yield CounterMetricFamily("lacuna_requests_restarted", help_text, value=model.num_restarted)


def merged(parts: Sequence[tuple[str, bytes]]) -> bytes:
    """Return the metrics of all ingresses as one text.

    Each sample gets the label ``ingress``. What the ingresses know of the engine replicas is the same in all, so it is
    taken from the first one, without that label.
    """
    families: dict[str, Metric] = {}
    for number, (ingress, text) in enumerate(parts):
        for family in text_string_to_metric_families(text.decode()):
            of_engines = family.name.startswith(ENGINE)
            if of_engines and number > 0:
                continue
            into = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            of_whom = {} if of_engines else {"ingress": ingress}
            into.samples += [sample._replace(labels=sample.labels | of_whom) for sample in family.samples]
    together = CollectorRegistry()
    together.register(Collected(families.values))
    return generate_latest(together)


class Ingress:
    """One ingress. ``start`` begins to look at the other replicas every ``TICK_S`` seconds.

    Ray Serve calls ``reconfigure``, and the other ingresses ``figures`` and ``metrics``.
    """

    def __init__(
        self,
        name: str,
        config: ServerConfig,
        fleet: "RayFleet",
        models: Sequence[str],
        **identity: str,
    ) -> None:
        """``identity`` has ``user_header`` and ``proxy_token`` of ``UserGuard``, if there are such."""
        self._name = name
        self._fleet = fleet
        self._identity = identity
        self._people: dict[str, User] = {}
        self._missed = 0
        self._seen = False
        self._draining = False
        self._watch: asyncio.Task[None] | None = None
        # The registry exists before the service, because the scheduler counts in it.
        self._usage = Usage(self._people, registry := CollectorRegistry())
        self._model = RemoteScheduler(config, fleet, models, self._usage)
        self.service = Service(config, self._model)
        self._metrics = Metrics(self.service, registry)
        registry.register(Collected(lambda: of_engines(self._model)))

    def application(self) -> ASGIApp:
        """Return the web application."""
        guard = Middleware(UserGuard, config=self.service.config, people=self._people, **self._identity)
        app: Starlette = build(
            self.service,
            guard=guard,
            metrics=self._metrics,
            instead=[Route("/metrics", self._show_metrics)],
        )
        return charging(app, Pool(self.service.config.max_held_bytes // 2))

    def start(self) -> None:
        """Begin to look at the other replicas."""
        self.service.model.start()
        self._watch = asyncio.create_task(self._look_again_and_again())

    def reconfigure(self, people: Mapping[str, Any]) -> None:
        """Replace the users from now on; connections that are open stay."""
        users = msgspec.convert(people, dict[str, User])  # where that fails, those of before stay
        self._people.clear()
        self._people.update(users)
        log.info("users", number=len(people))

    async def figures(self) -> IngressFigures:
        """Return what the other ingresses need to know."""
        return self._usage.figures(self._name)

    async def metrics(self) -> tuple[str, bytes]:
        """Return the name of this ingress, and its own metrics in Prometheus' text format."""
        return self._name, self._metrics.text()[0]

    async def close(self) -> None:
        """End: refuse what is under way, and say goodbye."""
        if self._watch is not None:
            self._watch.cancel()
        await self.service.close()

    async def _look_again_and_again(self) -> None:
        while True:
            began = time.monotonic()
            try:
                self._model.learn(await self._fleet.engines())
            except Exception:  # of Ray: there is no replica now
                self._model.learn([])
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
            log.info("draining", sessions=len(self.service.sessions))
        if self._draining:
            for session in list(self.service.sessions):
                session.leave(GOING)

    async def _show_metrics(self, request: Request) -> Response:
        """Return the metrics of all ingresses, and through each of them those of the engine replicas."""
        parts: list[tuple[str, bytes]] = []
        with contextlib.suppress(Exception):  # of Ray: nobody answers
            parts = await self._fleet.metrics()
        if self._name not in dict(parts):
            parts.append(await self.metrics())
        return Response(merged(parts), media_type=CONTENT_TYPE_LATEST)
