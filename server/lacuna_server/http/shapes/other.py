"""The GET routes: health, metrics and the list of models."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from starlette.responses import Response

from lacuna_server.http.metrics import Metrics
from lacuna_server.http.refusals import LlamaFault
from lacuna_server.service.service import Service

_LOADING = 503


class Health(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether the service can fill; ``error`` repeats it where llama.cpp's clients look for it."""

    status: Literal["ok", "loading model", "error"]
    detail: str = ""
    error: LlamaFault | None = None


class Model(msgspec.Struct, frozen=True):
    """A model that the service offers."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "lacuna"


class Models(msgspec.Struct, frozen=True):
    """All models that the service offers."""

    data: list[Model]
    object: Literal["list"] = "list"


@dataclass(frozen=True, slots=True)
class Plain:
    """A GET route; ``reply`` is the struct of its body, None for text of type ``media_type``."""

    path: str
    summary: str
    serve: Callable[[Service, Metrics], Response]
    reply: type[msgspec.Struct] | None = None
    media_type: str = "application/json"
    statuses: Mapping[str, str] = field(default_factory=lambda: {"200": "As asked."})

    @property
    def name(self) -> str:
        """The route's name."""
        return self.path.strip("/").replace("/", "_")


def health(service: Service, metrics: Metrics) -> Response:
    """Return status 200 once the model is loaded, otherwise 503."""
    status = service.status()
    if status.state == "ready":
        return _json(Health("ok"))
    detail = status.detail or f"{status.fraction:.0%} loaded"
    name: Literal["loading model", "error"] = "error" if status.state == "failed" else "loading model"
    return _json(Health(name, detail, LlamaFault(_LOADING, f"{name}: {detail}", "unavailable_error")), _LOADING)


def list_models(service: Service, metrics: Metrics) -> Response:
    """Return a list with the one model of the service."""
    return _json(Models([Model(service.config.model)]))


def show_metrics(service: Service, metrics: Metrics) -> Response:
    """Return the metrics for Prometheus."""
    text, content_type = metrics.text()
    return Response(text, media_type=content_type)


PLAIN: tuple[Plain, ...] = (
    Plain(
        "/health",
        "Whether the service can fill.",
        health,
        Health,
        statuses={"200": "It can.", "503": "The model is not loaded yet, or could not be."},
    ),
    Plain("/v1/models", "The model that is served.", list_models, Models),
    Plain("/metrics", "Counts and times for Prometheus.", show_metrics, media_type="text/plain"),
)


def _json(body: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")
