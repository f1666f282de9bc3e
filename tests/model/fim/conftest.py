from pathlib import Path

import pytest

from lacuna_model.hub import models


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the kernels, which are compiled once for all tests."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def cache(tmp_path: Path, compiled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of models, with the kernels."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(models.CACHE_VARIABLE, str(folder))
    folder.mkdir()
    models.kernels_dir().symlink_to(compiled)
    return folder
