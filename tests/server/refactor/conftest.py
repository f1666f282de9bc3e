from pathlib import Path

import pytest

from lacuna_server.refactor.journal import STATE_VARIABLE

from .bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate state folder for every test."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv(STATE_VARIABLE, str(folder))
    return folder
