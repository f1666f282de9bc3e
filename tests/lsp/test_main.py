import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lacuna_lsp import __main__ as cli
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
