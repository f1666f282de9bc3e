from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.model.conftest import links
from tests.training.corpora import Shelf

__all__ = ["links"]


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """The tiny model gains nothing from a second thread, and on a busy machine it loses a lot."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    (tmp_path / "shelf").mkdir()
    return Shelf(tmp_path / "shelf")
