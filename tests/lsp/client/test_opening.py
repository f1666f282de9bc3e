"""The client's first message is read before the server's modules are loaded, and given to them again."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_lsp.client import opening
from lacuna_lsp.client.opening import Opened
from lacuna_server.client import starting

GARBAGE = (
    b"",
    b"\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"Content-Length: 900\r\n\r\n{",
    b"Content-Length: -1\r\n\r\n{}",
)


def message(body: bytes) -> bytes:
    return b"content-length:%d\r\nContent-Type: a\r\n\r\n%s" % (len(body), body)


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


@pytest.mark.parametrize("said", GARBAGE)
def test_what_is_no_message_is_given_again(said: bytes) -> None:
    stream, again = Opened(io.BytesIO(said)), b""
    while part := stream.readline() or stream.read(1):
        again += part
    assert again == said


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


def test_the_engine_starts_with_the_projects_settings(tmp_path: Path, begun: list[tuple[str, ...]]) -> None:
    (tmp_path / "lacuna.toml").write_text('model = "qwen2.5-coder-0.5b"\n')
    opening.start_engine(initialize(workspaceFolders=[{"uri": tmp_path.as_uri(), "name": "project"}]))
    opening.start_engine(initialize(rootUri=tmp_path.as_uri()))
    assert begun == [("--model", "qwen2.5-coder-0.5b")] * 2


@pytest.mark.parametrize("wrong", [b"", b"{}", b"null", b"[1]", b'{"method": "exit"}', b'{"method": "initialize"}'])
def test_no_other_message_starts_an_engine(wrong: bytes, begun: list[tuple[str, ...]]) -> None:
    opening.start_engine(wrong)
    assert not begun


def test_parameters_of_another_shape_are_left_to_the_server(begun: list[tuple[str, ...]]) -> None:
    strange: list[Mapping[str, Any]] = [{"rootUri": 5}, {"workspaceFolders": "here"}, {"workspaceFolders": [{}]}]
    for params in strange:
        opening.start_engine(initialize(**params))
    assert not begun
