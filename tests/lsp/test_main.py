import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_lsp import __main__ as cli
from lacuna_server.client import starting
from lacuna_server.client.starting import log_path

CASE = """
import logging
from lacuna_lsp import __main__ as cli
cli.configure_log("WARNING")
for number in range(20000):
    logging.getLogger("lacuna_lsp.case").warning("line %d of those that make a log long, one after the other", number)
print("done")
"""


def run(state: Path) -> str:
    environment = os.environ | {"XDG_STATE_HOME": str(state)}
    return subprocess.run([sys.executable, "-c", CASE], env=environment, capture_output=True, text=True).stdout


def test_a_log_that_cannot_be_written_does_not_stop_the_program(tmp_path: Path) -> None:
    (tmp_path / "in the way").write_text("")
    assert run(tmp_path / "in the way") == "done\n"


def test_a_long_log_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert run(tmp_path) == "done\n"
    written = [file for file in log_path("lsp").parent.iterdir() if file.stat().st_size]
    assert len(written) == 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in written} == {0o600}
    assert max(file.stat().st_size for file in written) <= cli.TURN_OVER_BYTES


def message(body: bytes) -> bytes:
    return b"Content-Length: %d\r\nContent-Type: a\r\n\r\n%s" % (len(body), body)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_every_byte_is_given_again(bodies: list[bytes]) -> None:
    whole = b"".join(map(message, bodies))
    stream = cli.Opened(io.BytesIO(whole))
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
    cli.start_engine(initialize(initializationOptions=options, rootUri=None, workspaceFolders=None))
    assert begun == [expected]


def test_parameters_of_another_shape_are_left_to_the_server(begun: list[tuple[str, ...]]) -> None:
    strange: list[Mapping[str, Any]] = [{"rootUri": 5}, {"workspaceFolders": "here"}, {"workspaceFolders": [{}]}]
    for params in strange:
        cli.start_engine(initialize(**params))
    assert not begun
