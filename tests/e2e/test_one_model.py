"""Commands give the same answers with the service and without it; both have the real model."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.cli.conftest import run

from lacuna_server.client import lifecycle

TEXT = "from shop import Account\n\n\ndef area(width, height):\n    return <<fill>>\n\n\naccount = Account(<<fill>>)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coder_path: Path) -> Iterator[Path]:
    (tmp_path / "project").mkdir()
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "LACUNA_STATE"):
        (tmp_path / name).mkdir(mode=0o700)
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (tmp_path / "project" / "shop.py").write_text("class Account:\n    def __init__(self, owner):\n        pass\n")
    (tmp_path / "project" / "code.py").write_text(TEXT)
    yield tmp_path / "project"
    if lifecycle.find() is not None:
        run("stop")


def lacuna(project: Path, *arguments: str) -> Any:
    ended = run(*arguments, "--json", folder=project)
    answer = json.loads(ended.stdout)
    for one in (answer, *answer.get("snippets", ())):
        for varies in ("stats", "confidence", "score"):
            one.pop(varies, None)
    return ended.returncode, ended.stderr, answer


COMMANDS = {
    "fill": ("code.py", "--max-tokens", "8", "--workspace", "."),
    "context": ("code.py", "--at", "8:18", "--workspace", "."),
    "refactor": ("Account($$$A)", "Account($$$A, <<fill:tokens=4>>)", "made.py", "--min-confidence", "0"),
}


def test_the_service_answers_as_the_process_does(project: Path) -> None:
    (project / "made.py").write_text("owner = 1\naccount = Account()\n")
    alone = {name: lacuna(project, name, *arguments) for name, arguments in COMMANDS.items()}
    assert lifecycle.find() is None
    for name, arguments in COMMANDS.items():
        assert lacuna(project, name, *arguments, "--service") == alone[name]
        assert lifecycle.find() is not None
        if name == "fill":  # a service that runs is used unasked
            assert lacuna(project, name, *arguments) == alone[name]
