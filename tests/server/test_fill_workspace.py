from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult
from lacuna_model.hub import models
from lacuna_server.cli import engines
from lacuna_server.cli import main as cli


class RecordingEngine:
    """Records the workspaces that it reads and the requests that it gets. It is its own ``workspaces`` object, too."""

    def __init__(self) -> None:
        self.workspaces = self
        self.roots: list[str] = []
        self.requests: list[InfillRequest] = []

    def read(self, root: str, seconds: float) -> None:
        assert seconds > 0
        self.roots.append(root)

    def fill(self, request: InfillRequest) -> InfillResult:
        self.requests.append(request)
        return InfillResult("ok", ("x",), FillStats())


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> RecordingEngine:
    engine = RecordingEngine()
    monkeypatch.setattr(models, "path", lambda info: Path("weights.gguf"))
    monkeypatch.setattr(engines, "load_engine", lambda model, report: engine)
    return engine


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "pyproject.toml").touch()
    file = tmp_path / "project" / "code.py"
    file.write_text("x = <<fill>>\n")
    return file


@pytest.fixture
def lacuna(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: Any) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main([*map(str, arguments)])
        out, err = capfd.readouterr()
        return int(str(ended.value.code or 0)), out, err

    return run


def test_without_a_workspace_no_other_file_is_read(
    lacuna: Callable[..., tuple[int, str, str]], engine: RecordingEngine, source: Path
) -> None:
    lacuna("fill", source, "--no-workspace")
    assert (engine.roots, engine.requests[0].workspace) == ([], "")


def test_a_workspace_that_is_no_folder_is_refused(
    lacuna: Callable[..., tuple[int, str, str]], engine: RecordingEngine, source: Path
) -> None:
    code, out, err = lacuna("fill", source, "--workspace", source)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "is not a folder" in err
    assert engine.requests == []
