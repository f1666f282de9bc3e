"""The file of mask rows: written in 8 bit, read for the model it was trained for, refused in one line otherwise."""

from pathlib import Path

import pytest
import torch
from msgspec.structs import replace
from tests.model import tiny_masks
from tests.model.fim import tiny_fim
from torch import Tensor

from lacuna_model.core.errors import WeightsError
from lacuna_model.loading import rows_file
from lacuna_model.loading.rows_file import RowsConfig

MODEL = tiny_fim.CONFIG
CONFIG = RowsConfig(MODEL.hidden_size, MODEL.num_layers, slots=4, rank=2)


@pytest.fixture
def tensors() -> dict[str, Tensor]:
    return tiny_masks.tensors(MODEL, CONFIG.rank, slots=CONFIG.slots)


@pytest.fixture
def path(tmp_path: Path, tensors: dict[str, Tensor]) -> Path:
    """A file of them."""
    rows_file.write(tmp_path / "one.safetensors", CONFIG, tensors)
    return tmp_path / "one.safetensors"


def test_what_was_written_is_read_in_8_bit(path: Path, tensors: dict[str, Tensor]) -> None:
    config, found = rows_file.stored(path, MODEL)
    assert config == CONFIG
    assert torch.equal(found["masks"], tensors["masks"].half())
    dense = rows_file.dense(found)
    assert dense.keys() == tensors.keys()
    for name in rows_file.additions(MODEL, CONFIG.rank):
        assert found[name].dtype is torch.int8
        assert (dense[name] - tensors[name]).abs().max() < tensors[name].abs().max() / 100


def test_mask_rows_of_another_model_are_refused(path: Path) -> None:
    with pytest.raises(WeightsError, match="another model"):
        rows_file.stored(path, replace(MODEL, num_layers=MODEL.num_layers + 1))
    with pytest.raises(WeightsError, match="has shape"):
        rows_file.stored(path, replace(MODEL, intermediate_size=MODEL.intermediate_size + 8))


@pytest.mark.parametrize("left", [0, 40, 2000])
def test_a_damaged_file_is_one_line(path: Path, left: int) -> None:
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(WeightsError, match="cannot be read") as caught:
        rows_file.stored(path, MODEL)
    assert "\n" not in str(caught.value)


def test_a_file_that_lacks_a_tensor_says_which(path: Path, tensors: dict[str, Tensor]) -> None:
    del tensors["layers.1.down.low"]
    rows_file.write(path, CONFIG, tensors)
    with pytest.raises(WeightsError, match=r"layers\.1\.down\.low is missing"):
        rows_file.stored(path, MODEL)
