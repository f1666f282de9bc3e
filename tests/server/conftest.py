from pathlib import Path

import pytest


@pytest.fixture
def scripted_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Let worker processes import ``scripted_engine``, and return a folder for the test's files."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "scripted"))
    return tmp_path
