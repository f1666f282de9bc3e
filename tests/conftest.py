import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import torch
from hypothesis import settings

# The default of all tests and of the programs that they start, on machines of every size.
os.environ["LACUNA_MODEL"] = "qwen2.5-coder-0.5b"
# No test reads the settings of who runs it.
os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="lacuna-config-")

from lacuna_model.core.errors import LacunaError
from lacuna_model.hub import models

# Without a GPU Triton's kernels are interpreted; it looks at this when it is first imported.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# No test asserts a time, on a machine that may be busy with anything.
settings.register_profile("lacuna", deadline=None)
settings.load_profile("lacuna")


@pytest.fixture(scope="session")
def coder_path() -> Path:
    """The weights of the default model. `make test` fetches them; without them tests are skipped, but never in CI."""
    try:
        return models.path(models.find(models.DEFAULT_MODEL))
    except LacunaError as error:
        if os.environ.get("CI"):
            pytest.fail(f"CI has to have the model: {error}")
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def full_disk() -> Callable[[], AbstractContextManager[None]]:
    """Within it this process can write next to nothing to any file."""

    @contextmanager
    def limited() -> Iterator[None]:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    return limited
