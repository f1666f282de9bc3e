"""``lacuna logs``, in a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.cli.conftest import run


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = Path(run("logs", "--path").stdout.strip())
    assert file.is_relative_to(tmp_path)
    file.parent.mkdir(parents=True)
    return file


def test_the_last_lines(log: Path) -> None:
    log.write_text("".join(f"line {number}\n" for number in range(30)))
    ended = run("logs")
    assert (ended.returncode, ended.stderr) == (0, f"lacuna: {log}\n")
    assert ended.stdout.splitlines() == [f"line {number}" for number in range(10, 30)]
    assert run("logs", "--lines", "1").stdout == "line 29\n"
    assert run("logs", "--lines", "0").stdout == ""


def test_it_is_followed_also_where_it_begins_anew(log: Path) -> None:
    log.write_text("a long first line\n")
    command = [sys.executable, "-m", "lacuna_server", "logs", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "a long first line\n"
        with log.open("a") as stream:
            stream.write("second\n")
        assert process.stdout.readline() == "second\n"
        os.truncate(log, 0)
        log.write_text("anew\n")
        assert process.stdout.readline() == "anew\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
