from collections.abc import Iterator

import pytest
import torch
from tests.model.conftest import links

__all__ = ["links"]


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """The tiny model gains nothing from a second thread, and on a busy machine it loses a lot."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
