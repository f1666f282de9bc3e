"""The file of mask rows: written in 8 bit, read for the model it was trained for, refused in one line otherwise."""

from pathlib import Path

import pytest
import torch
from msgspec.structs import replace
from tests.model.fim import tiny_fim
from torch import Tensor

from lacuna_model.core.errors import WeightsError
from lacuna_model.loading import rows_file
from lacuna_model.loading.rows_file import RowsConfig

MODEL = tiny_fim.CONFIG
CONFIG = RowsConfig(MODEL.hidden_size, MODEL.num_layers, slots=4, rank=2)


def random(config: RowsConfig = CONFIG, seed: int = 0) -> dict[str, Tensor]:
    drawn = torch.Generator().manual_seed(seed)
    shapes = {"masks": (config.slots - 1, config.hidden_size), **rows_file.additions(MODEL, config.rank)}
    return {name: torch.randn(shape, generator=drawn) for name, shape in shapes.items()}


def test_what_was_written_is_read_in_8_bit(tmp_path: Path) -> None:
    path, wanted = tmp_path / "one.safetensors", random()
    rows_file.write(path, CONFIG, wanted)
    config, found = rows_file.stored(path, MODEL)
    assert config == CONFIG
    assert torch.equal(found["masks"], wanted["masks"].half())
    dense = rows_file.dense(found)
    assert dense.keys() == wanted.keys()
    for name in rows_file.additions(MODEL, CONFIG.rank):
        assert found[name].dtype is torch.int8
        assert (dense[name] - wanted[name]).abs().max() < wanted[name].abs().max() / 100


def test_mask_rows_of_another_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.safetensors"
    rows_file.write(path, CONFIG, random())
    with pytest.raises(WeightsError, match="another model"):
        rows_file.stored(path, replace(MODEL, num_layers=MODEL.num_layers + 1))
    with pytest.raises(WeightsError, match="has shape"):
        rows_file.stored(path, replace(MODEL, intermediate_size=MODEL.intermediate_size + 8))


@pytest.mark.parametrize("left", [0, 40, 2000])
def test_a_damaged_file_is_one_line(tmp_path: Path, left: int) -> None:
    path = tmp_path / "one.safetensors"
    rows_file.write(path, CONFIG, random())
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(WeightsError, match="cannot be read") as caught:
        rows_file.stored(path, MODEL)
    assert "\n" not in str(caught.value)


def test_a_file_that_lacks_a_tensor_says_which(tmp_path: Path) -> None:
    path, tensors = tmp_path / "one.safetensors", random()
    del tensors["layers.1.down.low"]
    rows_file.write(path, CONFIG, tensors)
    with pytest.raises(WeightsError, match=r"no layers\.1\.down\.low"):
        rows_file.stored(path, MODEL)
