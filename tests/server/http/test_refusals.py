from lacuna_server.http.refusals import body
from lacuna_server.wire.protocol import ServiceError


def test_each_family_of_clients_gets_its_own_shape() -> None:
    error = ServiceError("too_large", "too much")
    assert body(error, "llama").error.code == 413
    assert body(error, "openai").error.code == "too_large"
    assert {body(error, family).error.type for family in ("llama", "openai")} == {"invalid_request_error"}
