"""Commands with a running service, in processes of their own; the service has the scripted engine."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.cli.conftest import run
from tests.server.conftest import Serve, until
from tests.server.scripted.scripted_engine import expected

from lacuna_model.hub import models
from lacuna_server.client.starting import Address

TIMEOUT_S = 60
TEXT = "x = <<fill>>\n"
FILL = expected(TEXT, 4)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "code.py"
    file.write_text(TEXT)
    return file


def test_a_running_service_fills(served: Address, source: Path) -> None:
    ended = run("fill", source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"x = {FILL}\n", "")
    ended = run("fill", source, "--json", "--write", "--max-tokens", 3)
    answer = json.loads(ended.stdout)
    assert (ended.returncode, answer["status"], answer["fills"]) == (0, "ok", [FILL])
    assert (answer["stats"]["nfe"], answer["model"], answer["file"]) == (3, models.DEFAULT_MODEL, str(source))
    of_result = {"status", "text", "fills", "alternatives", "confidence", "refused", "warnings", "stats", "message"}
    assert set(answer) == of_result | {"file", "model"}
    assert source.read_text() == f"x = {FILL}\n"


def test_a_running_service_reads_the_project(served: Address, source: Path, tmp_path: Path) -> None:
    source.write_text("READ <<fill>>\n")
    (tmp_path / "private").write_text("what the project has")
    assert run("fill", source, "--workspace", tmp_path).stdout == "READ what the project has\n"
    assert run("fill", source, "--no-workspace").stdout == "READ no workspace\n"


def test_a_file_that_is_too_large_for_the_service_is_reported(served: Address, source: Path) -> None:
    source.write_text(f"<<fill>>{'#' * (2 << 20)}\n")
    ended = run("fill", source, "--no-workspace")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "lacuna: the service fills files of at most 2 MiB; use --no-service\n"


def test_ctrl_c_cancels_the_request(served: Address, source: Path) -> None:
    source.write_text("SLOW <<fill>>\n")
    with subprocess.Popen(
        [sys.executable, "-m", "lacuna_server", "fill", source, "--max-tokens", "1024"], stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        until(lambda: running() == 1)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130
        assert process.stderr.read() == b""
    until(lambda: running() == 0)


def running() -> int:
    count: int = json.loads(run("status", "--json").stdout)["status"]["running"]
    return count


def test_another_model_is_loaded_in_the_process(served: Address, source: Path) -> None:
    url = served.url
    ended = run("fill", source, "--model", "qwen2.5-coder-1.5b")
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        f"lacuna: the service at {url} has the model qwen2.5-coder-0.5b, so qwen2.5-coder-1.5b is loaded here",
        "lacuna: model qwen2.5-coder-1.5b is not on this machine; run: lacuna models pull qwen2.5-coder-1.5b",
    ]


@pytest.mark.parametrize("arguments", [["fill"], ["context", "--at", "1:4"], ["refactor", "x", "<<fill>>"]])
def test_a_service_that_is_not_wanted_is_not_used(served: Address, source: Path, arguments: list[str]) -> None:
    source.write_text("y = x\n" if arguments[0] == "refactor" else TEXT)
    (source.parent / ".git").mkdir()
    ended = run(*arguments, source, "--no-service")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "is not on this machine" in ended.stderr


def test_a_service_that_cannot_be_started_is_one_line_with_the_reason(serve: Serve, source: Path) -> None:
    ended = run("fill", source, "--service")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("lacuna: the service could not be started: lacuna: model qwen2.5-coder-0.5b is not")
    assert ended.stderr.count("\n") == 1


def test_a_running_service_shows_the_context(served: Address, source: Path) -> None:
    root = source.parent.resolve()
    ended = run("context", source, "--at", "1:4", "--json", "--budget", 7, "--workspace", root)
    assert (ended.returncode, ended.stderr) == (0, "")
    snippet = {"path": "other.py", "reason": "a test", "score": 0.5, "tokens": 7, "text": f"from {root}\n"}
    answer = {"workspace": str(root), "budget": 7, "tokens": 7, "snippets": [snippet], "message": ""}
    assert json.loads(ended.stdout) == answer
