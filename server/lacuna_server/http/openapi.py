"""Generates the OpenAPI 3.1 description of the HTTP routes, from the structs that the handlers use."""

from collections.abc import Sequence
from typing import Any

import msgspec

from lacuna_server.http.endpoint import Shape
from lacuna_server.http.refusals import LlamaError, OpenAiError
from lacuna_server.http.shapes.other import PLAIN, Health, Plain
from lacuna_server.http.shapes.table import SHAPES

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
    paths: dict[str, Any] = {}
    for shape in SHAPES:
        for path in shape.paths:
            paths[path] = {"post": _operation(shape, path, named)}
    for route in PLAIN:
        paths[route.path] = {"get": _plain(route, named)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lacuna", "version": version, "summary": "Fills gaps in code."},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def _operation(shape: Shape[Any], path: str, named: dict[str, Any]) -> dict[str, Any]:
    fault = named[repr(LlamaError if shape.family == "llama" else OpenAiError)]
    return {
        "operationId": path.strip("/").replace("/", "_"),
        "summary": shape.summary,
        "requestBody": {"required": True, "content": _json([named[repr(shape.body)]])},
        "responses": {
            "200": {
                "description": "The answer; server-sent events where `stream` is true.",
                "content": {
                    **_json([named[repr(kind)] for kind in shape.replies]),
                    "text/event-stream": {"schema": _event([named[repr(kind)] for kind in shape.chunks])},
                },
            },
            **{code: {"description": text, "content": _json([fault])} for code, text in _REFUSALS.items()},
        },
    }


def _event(schemas: Sequence[Any]) -> dict[str, Any]:
    """Return the schema of a server-sent event: its data is JSON, or ``[DONE]`` at the end in OpenAI's format."""
    json = {"type": "string", "contentMediaType": "application/json", "contentSchema": {"anyOf": list(schemas)}}
    return {"type": "object", "properties": {"data": {"anyOf": [json, {"const": "[DONE]"}]}}, "required": ["data"]}


def _plain(route: Plain, named: dict[str, Any]) -> dict[str, Any]:
    content = {route.media_type: {"schema": {"type": "string"}}}
    if route.reply is not None:
        content = _json([named[repr(route.reply)]])
    others = {"404": _json([named[repr(OpenAiError)]]), "503": _json([named[repr(Health)]])}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.parameters
    ]
    return {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            code: {"description": text, "content": others.get(code, content)} for code, text in route.statuses.items()
        },
    }


def _json(schemas: Sequence[Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}}}
