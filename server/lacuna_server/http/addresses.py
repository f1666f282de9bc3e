"""The routes of the application, their OpenAPI 3.1 description, and what an unknown address is told."""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ExceptionHandler
from starlette.websockets import WebSocket

from lacuna_server.http.endpoint import LlamaError, OpenAiError, OpenAiFault, endpoints, refusal
from lacuna_server.http.metrics import Metrics
from lacuna_server.http.shapes.table import PARAMETER, PLAIN, SHAPES, Health, Plain
from lacuna_server.service.service import Service
from lacuna_server.wire.protocol import ServiceError

_REF = "#/components/schemas/{name}"
_REFUSALS = {
    "400": "The request is not understood or cannot be served.",
    "401": "No token, or a wrong one.",
    "403": "The Origin or Host is not allowed.",
    "409": "Another request took its place, or it was cancelled.",
    "413": "The request is larger than the service takes.",
    "429": "Too many requests; `Retry-After` says when to ask again.",
    "500": "A fault of the service; its log has the details.",
    "503": "The model is not ready or the queue is full; `Retry-After` says when to ask again.",
}


def document(version: str) -> dict[str, Any]:
    """Return the whole description; ``version`` is that of the service."""
    types = [kind for shape in SHAPES for kind in (shape.body, *shape.replies, *shape.chunks)]
    types += [OpenAiError, LlamaError, *(route.reply for route in PLAIN if route.reply is not None)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    named = dict(zip(map(repr, types), schemas, strict=True))

    def any_of(kinds: Sequence[Any]) -> dict[str, Any]:
        return {"anyOf": [named[repr(kind)] for kind in kinds]} if len(kinds) > 1 else named[repr(kinds[0])]

    def json(*kinds: Any) -> dict[str, Any]:
        return {"application/json": {"schema": any_of(kinds)}}

    paths: dict[str, Any] = {}
    for shape in SHAPES:
        fault = json(LlamaError if shape.family == "llama" else OpenAiError)
        chunk = {"type": "string", "contentMediaType": "application/json", "contentSchema": any_of(shape.chunks)}
        data = {"anyOf": [chunk, {"const": "[DONE]"}]}  # the latter ends streams in OpenAI's format
        event = {"type": "object", "properties": {"data": data}, "required": ["data"]}
        answer = {
            "description": "The answer; server-sent events where `stream` is true.",
            "content": json(*shape.replies) | {"text/event-stream": {"schema": event}},
        }
        refusals = {code: {"description": text, "content": fault} for code, text in _REFUSALS.items()}
        for path in shape.paths:
            body = {"required": True, "content": json(shape.body)}
            paths[path] = {"post": _operation(path, shape.summary, {"200": answer} | refusals, requestBody=body)}
    for route in PLAIN:
        content = {"text/plain": {"schema": {"type": "string"}}} if route.reply is None else json(route.reply)
        contents = {"404": json(OpenAiError), "503": json(Health)}
        responses = {
            code: {"description": text, "content": contents.get(code, content)} for code, text in route.statuses.items()
        }
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            for name in PARAMETER.findall(route.path)
        ]
        paths[route.path] = {"get": _operation(route.path, route.summary, responses, parameters=parameters)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lacuna", "version": version, "summary": "Fills gaps in code."},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def _operation(path: str, summary: str, responses: dict[str, Any], **more: Any) -> dict[str, Any]:
    name = re.sub(r"\W+", "_", path).strip("_")
    return {"operationId": name, "summary": summary, "responses": responses, **more}


PLAYGROUND = str(files("lacuna_server") / "playground")
# All content comes from this server, nothing is inline, and no other page may frame these pages.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def routes(service: Service, metrics: Metrics | None = None) -> list[BaseRoute]:
    """Return every HTTP route of the service, which counts its requests in ``metrics``."""
    metrics = metrics or Metrics(service)
    described = msgspec.json.encode(document(version("lacuna-code")))

    def serve(plain: Plain) -> Callable[[Request], Response]:
        return lambda request: plain.serve(service, metrics, request)

    def play(request: Request) -> Response:
        return FileResponse(f"{PLAYGROUND}/index.html", headers=HEADERS)

    def describe(request: Request) -> Response:
        return Response(described, media_type="application/json")

    return [
        # A parameter may contain slashes.
        *(Route(PARAMETER.sub(r"{\1:path}", plain.path), serve(plain)) for plain in PLAIN),
        *(route for shape in SHAPES for route in endpoints(service, metrics, shape)),
        Route("/openapi.json", describe),
        Route("/", play),
        Mount("/playground", StaticFiles(directory=PLAYGROUND)),
    ]


# What other services have at an address that no part of ours is like.
ELSEWHERE = {
    "/api/generate": "/v1/completions",
    "/api/chat": "/v1/chat/completions",
    "/api/tags": "/v1/models",
    "/api/show": "/v1/models",
    "/v1/responses": "/v1/chat/completions",
    "/v1/messages": "/v1/chat/completions",
}
_BASE = "/v1"
# A longer path is a text that was passed by mistake.
_LONGEST = 80


def nearest(path: str, known: Sequence[str]) -> str:
    """Return the address that a path may mean, since one ends as the other; "" for none."""
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    return max((address for address in known if path.endswith(address) or address.endswith(path)), key=len, default="")


async def unknown(request: Request, error: Exception) -> Response:
    """Answer a request at an address that does not exist."""
    return _unknown(request)


async def unknown_websocket(websocket: WebSocket) -> None:
    """Refuse a websocket at an address that does not exist."""
    await websocket.send_denial_response(_unknown(websocket))


def _unknown(request: HTTPConnection) -> Response:
    path = request.url.path
    shown = repr(path if len(path) <= _LONGEST else f"{path[:_LONGEST]}...").strip("'")
    websockets = [route.path for route in request.app.routes if isinstance(route, WebSocketRoute)]
    if isinstance(request, WebSocket):
        return _fault(404, "unknown_url", f"there is no websocket at {shown}; connect to {websockets[0]}")
    if path in websockets:
        return _fault(404, "unknown_url", f"{shown} is a websocket: connect to it with ws://")
    addresses = [route.path for route in request.app.routes if isinstance(route, Route) and "{" not in route.path]
    right = nearest(path, [address for address in addresses if address != "/"])
    if not right:
        advice = "/openapi.json lists the addresses, and OpenAI's clients take the base address with /v1"
    elif right.startswith(f"{_BASE}/") and path.startswith(right.removeprefix(_BASE)):
        advice = f"use {right}: OpenAI's clients take the base address with /v1"
    else:
        advice = f"use {right}"
    return _fault(404, "unknown_url", f"there is no address {shown}; {advice}")


async def wrong_method(request: Request, error: Exception) -> Response:
    """Answer a request by a method that its address does not take."""
    headers = error.headers if isinstance(error, HTTPException) else None
    takes = (headers or {}).get("Allow", "another method")
    message = f"{request.url.path} takes {takes}, not {request.method}"
    return _fault(405, "method_not_allowed", message, headers)


async def failed(request: Request, error: Exception) -> Response:
    """Answer a request whose route failed; the error goes to the log."""
    return refusal(ServiceError("internal", "the service failed; its log has the details"))


HANDLERS: Mapping[int | type[Exception], ExceptionHandler] = {404: unknown, 405: wrong_method, Exception: failed}


def _fault(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    body = OpenAiError(OpenAiFault(message, "invalid_request_error", code))
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")
