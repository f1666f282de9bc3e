"""The files that come with a cluster agree with the program: dashboard, examples and the page."""

import json
import re
from importlib.resources import files
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families
from ray.serve.schema import ServeDeploySchema

from lacuna_cluster import settings
from lacuna_cluster.ingress import Ingress, merged
from lacuna_cluster.links import EngineFigures
from lacuna_cluster.settings import ClusterArgs, EngineArgs, Scaling
from lacuna_model.core.params import FillStats
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import Status
from lacuna_server.worker.scheduler import Finished

SERVER = Path(__file__).parents[3] / "server"


class NoFleet:
    """No replica answers."""


async def metric_names() -> set[str]:
    """The names of all metrics that an ingress shows once something has happened."""
    ingress = Ingress("i", ServerConfig(), NoFleet(), ("m",))  # type: ignore[arg-type]
    ingress.service.model.learn([EngineFigures("r", {"m": Status("m", "ready")})])  # type: ignore[attr-defined]
    ingress._usage.ended("alice", "ok", FillStats())
    ingress._usage._refused.labels("alice").inc()
    for observer in ingress.service.model.observers:
        observer(Finished("ok", 0.1, 0.1, 1, FillStats()))
    families = text_string_to_metric_families(merged([await ingress.metrics()]).decode())
    return {sample.name for family in families for sample in family.samples}


async def test_every_expression_of_the_dashboard_names_metrics_that_there_are() -> None:
    dashboard = json.loads((files("lacuna_cluster") / "grafana.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = set(re.findall(r"lacuna_\w+", " ".join(expressions)))
    assert len(named) > 10
    assert named <= await metric_names()


def test_the_examples_have_keys_that_there_are() -> None:
    settings.read(yaml.safe_load((SERVER / "examples/cluster.yaml").read_text()))
    manifest = yaml.safe_load((SERVER / "examples/rayservice.yaml").read_text())
    for text in (manifest["spec"]["serveConfigV2"], (SERVER / "examples/serve.yaml").read_text()):
        config = ServeDeploySchema.model_validate(yaml.safe_load(text))
        (application,) = config.applications
        settings.read(application.args)


def test_the_page_names_every_key() -> None:
    page = (SERVER / "CLUSTER.md").read_text()
    for kind in (ClusterArgs, EngineArgs, Scaling):
        for key in kind.__struct_fields__:
            assert re.search(rf"`([\w.]*\.)?{key}`", page), key
