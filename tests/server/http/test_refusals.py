from typing import get_args

import pytest

from lacuna_server.http.refusals import body, response, status
from lacuna_server.wire.protocol import ErrorCode, ServiceError

STATUSES = {
    "bad_message": 400,
    "bad_request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "unknown_document": 404,
    "unknown_request": 404,
    "wrong_version": 409,
    "superseded": 409,
    "cancelled": 409,
    "too_slow": 408,
    "too_large": 413,
    "rate_limited": 429,
    "internal": 500,
    "overloaded": 503,
    "loading": 503,
    "model_failed": 503,
    "worker_crashed": 503,
    "shutting_down": 503,
}


@pytest.mark.parametrize("code", get_args(ErrorCode))
def test_every_code_has_its_status(code: ErrorCode) -> None:
    assert status(ServiceError(code, "why")) == STATUSES[code]


@pytest.mark.parametrize(("after_ms", "header"), [(0, "1"), (1, "1"), (2001, "3")])
def test_the_time_of_the_next_attempt_is_rounded_up_to_seconds(after_ms: int, header: str) -> None:
    assert response(ServiceError("rate_limited", "why", after_ms)).headers["retry-after"] == header


def test_an_error_that_no_retry_can_resolve_has_no_retry_time() -> None:
    assert "retry-after" not in response(ServiceError("bad_request", "why")).headers
    assert response(ServiceError("unauthorized", "why")).headers["www-authenticate"] == "Bearer"


def test_each_family_of_clients_gets_its_own_shape() -> None:
    error = ServiceError("too_large", "too much")
    assert body(error, "llama").error.code == 413
    assert body(error, "openai").error.code == "too_large"
    assert {body(error, family).error.type for family in ("llama", "openai")} == {"invalid_request_error"}
