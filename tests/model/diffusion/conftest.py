from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of the tests' own for prepared weights; the kernels in C are compiled once for all tests."""
    from lacuna_model.hub import models

    kernels = models.kernels_dir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LACUNA_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(models, "kernels_dir", lambda: kernels)
        yield
