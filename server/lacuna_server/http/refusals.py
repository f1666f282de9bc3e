"""Refusals over HTTP: a status for every error code, and a body in the format of the client's family."""

import math
from http import HTTPStatus
from typing import Literal

import msgspec
from starlette.responses import Response

from lacuna_server.http.shapes.fields import FieldError
from lacuna_server.wire.protocol import ErrorCode, ServiceError

Family = Literal["openai", "llama"]

_STATUS: dict[ErrorCode, HTTPStatus] = {
    "bad_message": HTTPStatus.BAD_REQUEST,
    "bad_request": HTTPStatus.BAD_REQUEST,
    "unauthorized": HTTPStatus.UNAUTHORIZED,
    "forbidden": HTTPStatus.FORBIDDEN,
    "unknown_document": HTTPStatus.NOT_FOUND,
    "unknown_request": HTTPStatus.NOT_FOUND,
    "wrong_version": HTTPStatus.CONFLICT,
    "superseded": HTTPStatus.CONFLICT,
    "cancelled": HTTPStatus.CONFLICT,
    "too_slow": HTTPStatus.REQUEST_TIMEOUT,
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "rate_limited": HTTPStatus.TOO_MANY_REQUESTS,
    "internal": HTTPStatus.INTERNAL_SERVER_ERROR,
}
# The names of error types by status, for the families openai and llama; other statuses are invalid_request_error.
_TYPES: dict[int, tuple[str, str]] = {
    401: ("authentication_error", "authentication_error"),
    403: ("permission_error", "permission_error"),
    404: ("not_found_error", "not_found_error"),
    429: ("rate_limit_error", "unavailable_error"),
    500: ("server_error", "server_error"),
    503: ("server_error", "unavailable_error"),
}


class OpenAiFault(msgspec.Struct, frozen=True):
    """The error in OpenAI's format; ``code`` is one of the service's stable error codes, ``param`` the wrong field."""

    message: str
    type: str
    code: str
    param: str | None = None


class OpenAiError(msgspec.Struct, frozen=True):
    """A refusal in OpenAI's format."""

    error: OpenAiFault


class LlamaFault(msgspec.Struct, frozen=True):
    """The error in llama.cpp's format; ``code`` is the HTTP status."""

    code: int
    message: str
    type: str


class LlamaError(msgspec.Struct, frozen=True):
    """A refusal in llama.cpp's format."""

    error: LlamaFault


def status(error: ServiceError) -> int:
    """Return the HTTP status of an error; codes without a status of their own give 503."""
    return _STATUS.get(error.code, HTTPStatus.SERVICE_UNAVAILABLE).value


def body(error: ServiceError, family: Family) -> OpenAiError | LlamaError:
    """Return the body of a refusal in the format of a family of clients."""
    code = status(error)
    openai, llama = _TYPES.get(code, ("invalid_request_error", "invalid_request_error"))
    if family == "llama":
        return LlamaError(LlamaFault(code, str(error), llama))
    return OpenAiError(
        OpenAiFault(str(error), openai, error.code, error.field if isinstance(error, FieldError) else None)
    )


def response(error: ServiceError, family: Family = "openai") -> Response:
    """Return the response to a refused request, with ``Retry-After`` in seconds for statuses 429 and 503."""
    code = status(error)
    headers = {}
    if code in (429, 503):
        headers["Retry-After"] = str(max(math.ceil(error.retry_after_ms / 1e3), 1))
    if code == HTTPStatus.REQUEST_TIMEOUT:
        headers["Connection"] = "close"  # the rest of the body would be taken for the next request
    if code == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(msgspec.json.encode(body(error, family)), code, headers, media_type="application/json")
