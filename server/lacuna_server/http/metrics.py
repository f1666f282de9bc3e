"""Metrics for Prometheus: requests are counted when they end, the service's own counts are read at each scrape."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from lacuna_server.service.service import Service
from lacuna_server.worker.scheduler import Finished

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_PASSES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counts HTTP requests by shape, and the fills of all clients.

    ``outcome`` is ``ok``, another status of a result, or the code of a refusal.
    """

    def __init__(self, service: Service, registry: CollectorRegistry | None = None) -> None:
        registry = self._registry = registry or CollectorRegistry()
        self._requests = Counter("lacuna_requests", "HTTP requests", ["shape", "outcome"], registry=registry)
        self._seconds = Histogram(
            "lacuna_request_seconds", "Until the end of the answer", ["shape"], buckets=_SECONDS, registry=registry
        )
        self._fills = Counter("lacuna_fills", "Fills of the websocket and HTTP", ["outcome"], registry=registry)
        self._steps = Counter("lacuna_fill_steps", "Denoising steps taken", ["outcome"], registry=registry)
        self._waited = Histogram("lacuna_fill_waited_seconds", "In the queue", buckets=_SECONDS, registry=registry)
        self._busy = Histogram("lacuna_fill_busy_seconds", "In the worker", buckets=_SECONDS, registry=registry)
        self._nfe = Histogram("lacuna_fill_nfe", "Forward passes of a fill", buckets=_PASSES, registry=registry)
        self._tokens = Counter("lacuna_fill_tokens", "Tokens of delivered fills", registry=registry)
        self._context = Counter("lacuna_context_tokens", "Tokens of the contexts read", registry=registry)
        self._cached = Counter("lacuna_context_cached_tokens", "Those that came from the cache", registry=registry)
        registry.register(Collected(lambda: _of_service(service)))
        service.model.observers.append(self._filled)

    def answered(self, shape: str, outcome: str, seconds: float) -> None:
        """Count one HTTP request."""
        self._requests.labels(shape, outcome).inc()
        self._seconds.labels(shape).observe(seconds)

    def _filled(self, finished: Finished) -> None:
        self._fills.labels(finished.outcome).inc()
        self._steps.labels(finished.outcome).inc(finished.steps)
        self._waited.observe(finished.waited_s)
        self._busy.observe(finished.busy_s)
        if finished.stats is not None:
            self._nfe.observe(finished.stats.nfe)
            self._tokens.inc(finished.stats.tokens)
            self._context.inc(finished.stats.context_tokens)
            self._cached.inc(finished.stats.cached_tokens)

    def text(self) -> tuple[bytes, str]:
        """Return the metrics in Prometheus' text format, and the content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST


class Collected(Collector):
    """Metrics that are read at each scrape, so that they are kept in one place only."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of now."""
        return self._collect()


def _of_service(service: Service) -> Iterator[Metric]:
    """Yield the metrics of load, sessions, crashes and feedback."""
    status = service.status()
    for name, value, help_text in (
        ("queued", status.queued, "Requests that wait"),
        ("running", status.running, "Requests that run"),
        ("sessions", status.sessions, "Websocket sessions"),
        ("documents", status.documents, "Documents that sessions have open"),
        ("model_ready", status.state == "ready", "Whether the model is loaded"),
        ("uptime_seconds", status.uptime_s, "Since the service began"),
    ):
        yield GaugeMetricFamily(f"lacuna_{name}", help_text, value=float(value))
    restarts = "How often the model process was started again"
    yield CounterMetricFamily("lacuna_worker_restarts", restarts, status.restarts)
    feedback = CounterMetricFamily("lacuna_feedback", "What became of fills", labels=["kind"])
    for kind, count in service.feedback.items():
        feedback.add_metric([kind], count)
    yield feedback
