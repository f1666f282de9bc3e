from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.model.diffusion import trained


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of the tests' own for prepared weights; the kernels in C are compiled once for all tests."""
    from lacuna_model.hub import models

    kernels = models.kernels_dir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LACUNA_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(models, "kernels_dir", lambda: kernels)
        yield


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tiny model that has learnt a small language."""
    folder = tmp_path_factory.mktemp("trained")
    trained.write(folder)
    return folder
