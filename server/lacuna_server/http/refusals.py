"""Refusals over HTTP: a status for every error code, and a body in the shape the client's family reads."""

import math
from http import HTTPStatus
from typing import Literal

import msgspec
from starlette.responses import Response

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
# What each family calls a class of errors: bad requests, those of the token, those to try again later, and faults.
_TYPES: dict[int, tuple[str, str]] = {
    401: ("authentication_error", "authentication_error"),
    403: ("permission_error", "permission_error"),
    404: ("not_found_error", "not_found_error"),
    429: ("rate_limit_error", "unavailable_error"),
    500: ("server_error", "server_error"),
    503: ("server_error", "unavailable_error"),
}


class OpenAiFault(msgspec.Struct, frozen=True):
    """What is wrong, as OpenAI's clients read it; ``code`` is one of the service's stable error codes."""

    message: str
    type: str
    code: str
    param: str | None = None


class OpenAiError(msgspec.Struct, frozen=True):
    """A refusal in OpenAI's shape."""

    error: OpenAiFault


class LlamaFault(msgspec.Struct, frozen=True):
    """What is wrong, as llama.cpp tells it; ``code`` is the HTTP status."""

    code: int
    message: str
    type: str


class LlamaError(msgspec.Struct, frozen=True):
    """A refusal in llama.cpp's shape."""

    error: LlamaFault


def status(error: ServiceError) -> int:
    """The HTTP status of an error; what may go well later is 503."""
    return _STATUS.get(error.code, HTTPStatus.SERVICE_UNAVAILABLE).value


def body(error: ServiceError, family: Family) -> OpenAiError | LlamaError:
    """The error in the shape of a family of clients."""
    code = status(error)
    openai, llama = _TYPES.get(code, ("invalid_request_error", "invalid_request_error"))
    if family == "llama":
        return LlamaError(LlamaFault(code, str(error), llama))
    return OpenAiError(OpenAiFault(str(error), openai, error.code))


def response(error: ServiceError, family: Family = "openai") -> Response:
    """The whole response, with ``Retry-After`` in seconds where it may go well later."""
    code = status(error)
    headers = {}
    if code in (429, 503):
        headers["Retry-After"] = str(max(math.ceil(error.retry_after_ms / 1e3), 1))
    if code == HTTPStatus.REQUEST_TIMEOUT:
        headers["Connection"] = "close"  # what is still to come would be taken for the next request
    if code == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(msgspec.json.encode(body(error, family)), code, headers, media_type="application/json")
