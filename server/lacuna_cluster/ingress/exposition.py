"""Metrics of all replicas in one answer: Prometheus' text of each ingress, with the label ``ingress``."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from lacuna_cluster.messages import EngineFigures

__all__ = ["CONTENT_TYPE", "add_engines", "add_restarts", "merged", "registry"]

ENGINE = "lacuna_engine_"


class _Once(Collector):
    """A collector of a function."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of now."""
        return self._collect()


def registry() -> CollectorRegistry:
    """Return a new registry."""
    return CollectorRegistry()


def add_restarts(into: CollectorRegistry, number: Callable[[], int]) -> None:
    """Add how often a request was started again on another replica."""

    def collect() -> Iterator[Metric]:
        help_text = "Requests that were started again because a replica was lost"
        yield CounterMetricFamily("lacuna_requests_restarted", help_text, value=number())

    into.register(_Once(collect))


def add_engines(into: CollectorRegistry, figures: Callable[[], Sequence[EngineFigures]]) -> None:
    """Add what the engine replicas report, with the labels ``replica`` and ``model``."""

    def collect() -> Iterator[Metric]:
        gauges = {
            name: GaugeMetricFamily(f"{ENGINE}{name}", help_text, labels=["replica", "model"])
            for name, help_text in (
                ("ready", "Whether the model is loaded"),
                ("queued", "Requests that wait in the replica"),
                ("running", "Requests that run in the replica"),
            )
        }
        first = GaugeMetricFamily(f"{ENGINE}first_snapshot_seconds", "Mean time to a first step", labels=["replica"])
        restarts = CounterMetricFamily(f"{ENGINE}restarts", "Starts of a model process again", labels=["replica"])
        for one in figures():
            first.add_metric([one.replica], one.first_snapshot_s)
            restarts.add_metric([one.replica], one.restarts)
            for model, status in one.statuses.items():
                gauges["ready"].add_metric([one.replica, model], float(status.state == "ready"))
                gauges["queued"].add_metric([one.replica, model], status.queued)
                gauges["running"].add_metric([one.replica, model], status.running)
        yield from gauges.values()
        yield first
        yield restarts

    into.register(_Once(collect))


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
            into.samples += family.samples if of_engines else [_of(sample, ingress) for sample in family.samples]
    together = CollectorRegistry()
    together.register(_Once(families.values))
    return generate_latest(together)


def _of(sample: Sample, ingress: str) -> Sample:
    return sample._replace(labels=sample.labels | {"ingress": ingress})
