"""The table of all addresses: the shapes, with paths, body and answers of each, and the GET routes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from lacuna_server.http.endpoint import B, LlamaFault, OpenAiError, OpenAiFault, Shape
from lacuna_server.http.metrics import Metrics
from lacuna_server.http.shapes import llama, mercury, openai
from lacuna_server.http.shapes.answer import Exchange
from lacuna_server.http.shapes.llama import Content, LlamaReply
from lacuna_server.http.shapes.openai import ChatChunk, ChatReply, TextReply
from lacuna_server.http.shapes.question import DEFAULT_TOKENS
from lacuna_server.service.service import Service
from lacuna_server.wire.protocol import Status

_LOADING = 503
PARAMETER = re.compile(r"\{(\w+)\}")


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


class Props(msgspec.Struct, frozen=True):
    """What llama.cpp's clients ask about a server; ``total_slots`` requests are filled at the same time.

    The settings are ``n_ctx``, the tokens that context and fill may have together, and as ``params`` the values of
    fields that a request leaves out. The modalities are what the model reads besides text.
    """

    default_generation_settings: dict[str, int | dict[str, float]]
    total_slots: int
    model_path: str
    model_alias: str
    modalities: dict[str, bool]
    build_info: str


@dataclass(frozen=True, slots=True)
class Plain:
    """A GET route; ``reply`` is the struct of its body, None for plain text."""

    path: str
    summary: str
    serve: Callable[[Service, Metrics, Request], Response]
    reply: type[msgspec.Struct] | None = None
    statuses: Mapping[str, str] = field(default_factory=lambda: {"200": "As asked."})


def health(service: Service, metrics: Metrics, request: Request) -> Response:
    """Return status 200 once the model is loaded, otherwise 503."""
    status = service.status()
    if status.state == "ready":
        return _json(Health("ok"))
    return _json(_not_ready(status), _LOADING)


def _not_ready(status: Status) -> Health:
    detail = status.detail or f"{status.fraction:.0%} loaded"
    name: Literal["loading model", "error"] = "error" if status.state == "failed" else "loading model"
    return Health(name, detail, LlamaFault(_LOADING, f"{name}: {detail}", "unavailable_error"))


def props(service: Service, metrics: Metrics, request: Request) -> Response:
    """Return what llama.cpp's server tells of itself; status 503 until the model is loaded, as there."""
    status = service.status()
    if status.state != "ready":
        return _json(_not_ready(status), _LOADING)
    defaults = {"n_predict": DEFAULT_TOKENS, "temperature": 0.0, "seed": 0}
    told = Props(
        {"n_ctx": status.positions, "params": defaults},
        service.config.max_active,
        model_path=service.config.model,
        model_alias=service.config.model,
        modalities={"vision": False, "audio": False},
        build_info=f"lacuna-code {version('lacuna-code')}",
    )
    return _json(told)


def list_models(service: Service, metrics: Metrics, request: Request) -> Response:
    """Return the models of the service."""
    return _json(Models([Model(name) for name in service.model.models]))


def show_model(service: Service, metrics: Metrics, request: Request) -> Response:
    """Return the model of a name; status 404 where there is none."""
    name = request.path_params["name"]
    if name in service.model.models:
        return _json(Model(name))
    message = f"there is no model {name[:80]!r}; there is {', '.join(service.model.models)}"
    return _json(OpenAiError(OpenAiFault(message, "invalid_request_error", "model_not_found", "model")), 404)


def show_metrics(service: Service, metrics: Metrics, request: Request) -> Response:
    """Return the metrics for Prometheus."""
    text, content_type = metrics.text()
    return Response(text, media_type=content_type)


_WHEN_LOADED = {"200": "It can.", "503": "The model is not loaded yet, or could not be."}
PLAIN: tuple[Plain, ...] = (
    Plain("/health", "Whether the service can fill.", health, Health, statuses=_WHEN_LOADED),
    Plain("/v1/models", "The model that is served.", list_models, Models),
    Plain(
        "/v1/models/{name}",
        "A model that is served.",
        show_model,
        Model,
        statuses={"200": "As asked.", "404": "There is no such model."},
    ),
    Plain("/props", "What is served, as llama.cpp tells it.", props, Props, statuses=_WHEN_LOADED),
    Plain("/metrics", "Counts and times for Prometheus.", show_metrics),
)


def _json(body: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")


_LLAMA_REPLIES = (LlamaReply, list[LlamaReply], dict[str, Any], list[dict[str, Any]])


def _chat(name: str, path: str, summary: str, body: type[B], open: Callable[[B, str], Exchange]) -> Shape[B]:
    """Return a shape that is answered with chat messages."""
    return Shape(name, (path,), summary, body, open, "openai", (ChatReply,), (ChatChunk,))


SHAPES: tuple[Shape[Any], ...] = (
    Shape(
        "infill",
        ("/infill",),
        "Fill a gap, as llama.cpp does. With `response_fields` the answer has those fields alone, with `n_cmpl` it is "
        "a list.",
        llama.Infill,
        llama.infill,
        "llama",
        _LLAMA_REPLIES,
        (Content, LlamaReply),
    ),
    Shape(
        "completion",
        ("/completion", "/completions"),
        "Go on with a prompt, or fill the gap between its FIM sentinels, as llama.cpp does.",
        llama.Completion,
        llama.completion,
        "llama",
        _LLAMA_REPLIES,
        (Content, LlamaReply),
    ),
    Shape(
        "completions",
        ("/v1/completions",),
        "Fill the gap between prompt and suffix, or between the FIM sentinels of the prompt, as OpenAI does. A prompt "
        "in the format of Sweep's or Zed's next-edit models gets its window as it would become.",
        openai.TextRequest,
        openai.completion,
        "openai",
        (TextReply,),
        (TextReply,),
    ),
    _chat(
        "fim",
        "/v1/fim/completions",
        "Fill the gap between prompt and suffix, as Mercury and Mistral do.",
        openai.FimRequest,
        openai.fim,
    ),
    _chat(
        "edit",
        "/v1/edit/completions",
        "Write at the cursor of the code to edit, as Mercury does; the answer is that code, fenced, or `None`.",
        mercury.ChatRequest,
        mercury.edit,
    ),
    _chat(
        "apply",
        "/v1/apply/completions",
        "Merge an update into the original code, as Mercury does.",
        mercury.ChatRequest,
        mercury.applied,
    ),
    _chat(
        "chat",
        "/v1/chat/completions",
        "Answer a chat with the model's own chat template. A next edit, an update to apply or a prompt with FIM "
        "sentinels as the last message is answered as the other endpoints do.",
        mercury.ChatRequest,
        mercury.chat,
    ),
)
