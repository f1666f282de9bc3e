import os
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from lacuna_model import models
from lacuna_model.errors import LacunaError

# Without a GPU Triton's kernels are interpreted; it looks at this when it is first imported.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# No test asserts a time, on a machine that may be busy with anything.
settings.register_profile("lacuna", deadline=None)
settings.load_profile("lacuna")


@pytest.fixture(scope="session")
def gguf_path() -> Path:
    """The real base model. `make test` fetches it; without it these tests are skipped, but never in CI."""
    try:
        return models.path(models.find(models.DEFAULT_MODEL))
    except LacunaError as error:
        if os.environ.get("CI"):
            pytest.fail(f"CI has to have the base model: {error}")
        pytest.skip(str(error))
