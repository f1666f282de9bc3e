"""The first message of a client starts the engine."""

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_lsp.client import opening
from lacuna_lsp.client.opening import Opened
from lacuna_server.client import starting


def message(body: bytes) -> bytes:
    return b"Content-Length: %d\r\nContent-Type: a\r\n\r\n%s" % (len(body), body)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_every_byte_is_given_again(bodies: list[bytes]) -> None:
    whole = b"".join(map(message, bodies))
    stream = Opened(io.BytesIO(whole))
    assert stream.message == bodies[0]
    again = b""
    for body in bodies:
        again += stream.readline() + stream.readline() + stream.readline() + stream.read(len(body))
    assert again == whole
    assert (stream.readline(), stream.read(5)) == (b"", b"")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The arguments of the services that were started."""
    monkeypatch.delenv("LACUNA_MODEL", raising=False)
    found: list[tuple[str, ...]] = []
    monkeypatch.setattr(starting, "begin", lambda *arguments: found.append(arguments))
    return found


def initialize(**params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, ()),
        ({"model": "qwen2.5-coder-1.5b"}, ("--model", "qwen2.5-coder-1.5b")),
        ({"lacuna": {"threads": 3}}, ("--threads", "3")),
        ({"threads": "many"}, ()),
    ],
)
def test_the_engine_starts_with_the_clients_settings(
    options: object, expected: tuple[str, ...], begun: list[tuple[str, ...]]
) -> None:
    opening.start_engine(initialize(initializationOptions=options, rootUri=None, workspaceFolders=None))
    assert begun == [expected]


def test_parameters_of_another_shape_are_left_to_the_server(begun: list[tuple[str, ...]]) -> None:
    strange: list[Mapping[str, Any]] = [{"rootUri": 5}, {"workspaceFolders": "here"}, {"workspaceFolders": [{}]}]
    for params in strange:
        opening.start_engine(initialize(**params))
    assert not begun
