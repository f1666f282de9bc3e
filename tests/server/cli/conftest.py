"""The command line, in this process with an engine that is no model, or in one of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, SlotView, Snapshot, Status
from lacuna_model.hub import models
from lacuna_server import __main__ as cli
from lacuna_server.cli import engines

Lacuna = Callable[..., tuple[int, bytes, str]]
FIRST = "value"
SECOND = "if a:\n    b()"


class FakeEngine:
    """Fills every gap with a fixed text, and records the requests."""

    def __init__(self, fills: tuple[str, ...] = (FIRST, SECOND), status: Status = "ok", message: str = "") -> None:
        self.fills, self.status, self.message = fills, status, message
        self.refused: tuple[str, ...] = ()
        self.warnings: tuple[str, ...] = ()
        self.requests: list[InfillRequest] = []
        self.change: Callable[[InfillRequest, InfillResult], InfillResult] = lambda request, result: result

    def fill(self, request: InfillRequest) -> InfillResult:
        self.requests.append(request)
        fills = self.fills[: len(request.regions)]
        stats = FillStats(nfe=3, tokens=4, ms=5.0)
        result = InfillResult(self.status, fills, stats, self.message, refused=self.refused, warnings=self.warnings)
        return self.change(request, result)

    def stream(self, request: InfillRequest) -> Generator[Snapshot, None, InfillResult]:
        result = self.fill(request)
        for step in range(3):
            slots = tuple((SlotView(text, "committed", 0.9), SlotView("", "mask", 0.0)) for text in result.fills)
            yield Snapshot(step, result.fills, slots)
        return result


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without a model."""
    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    engine = FakeEngine()
    monkeypatch.setattr(models, "path", lambda info: Path("weights.gguf"))
    monkeypatch.setattr(engines, "load_engine", lambda model, report: engine)
    return engine


@pytest.fixture
def lacuna(capfdbinary: pytest.CaptureFixture[bytes]) -> Lacuna:
    """Runs the command line in this process, and returns its exit code, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, bytes, str]:
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main([str(argument) for argument in arguments])
        captured = capfdbinary.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err.decode()

    return run


def run(*arguments: object, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the real command in a separate process, in a folder."""
    command = [sys.executable, "-m", "lacuna_server", *map(str, arguments)]
    own = os.environ | environment
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=300, check=False)
