"""The file of a drafter: written in 8 bit, read for the base it was trained for, refused in one line otherwise."""

from pathlib import Path

import pytest
import torch
from msgspec.structs import replace
from tests.model import tiny_drafter

from lacuna_model.core.errors import WeightsError
from lacuna_model.fim import drafter_file

from . import tiny_fim

MODEL = tiny_fim.loaded()


def test_what_was_written_is_read_in_8_bit(tmp_path: Path) -> None:
    path = tmp_path / "drafter.safetensors"
    drafter_file.write(path, tiny_drafter.CONFIG, tiny_drafter.tensors(3))
    found, wanted = drafter_file.read(path, MODEL.transformer, None), tiny_drafter.random(3, MODEL)
    drawn = torch.Generator().manual_seed(0)
    hidden, tokens = torch.randn(6, tiny_drafter.CONFIG.hidden_size, generator=drawn), torch.arange(3, 9)
    states = wanted.step(hidden, tokens)
    assert torch.allclose(found.step(hidden, tokens), states, atol=0.1)
    assert torch.allclose(found.logits(states), wanted.logits(states), atol=0.1)
    assert found.vocabulary.tolist() == wanted.vocabulary.tolist()


def test_a_drafter_for_another_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "drafter.safetensors"
    wider = replace(tiny_drafter.CONFIG, hidden_size=2 * tiny_drafter.CONFIG.hidden_size)
    tensors = {name: torch.zeros(shape) for name, shape in drafter_file.linears(wider).items()}
    about = {"norm": torch.ones(wider.hidden_size), "vocabulary": torch.arange(4)}
    drafter_file.write(path, wider, tensors | about)
    with pytest.raises(WeightsError, match="another model"):
        drafter_file.read(path, MODEL.transformer, None)


@pytest.mark.parametrize("left", [0, 40, 2000])
def test_a_damaged_file_is_one_line(tmp_path: Path, left: int) -> None:
    path = tmp_path / "drafter.safetensors"
    drafter_file.write(path, tiny_drafter.CONFIG, tiny_drafter.tensors(3))
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(WeightsError, match="cannot be read") as caught:
        drafter_file.read(path, MODEL.transformer, None)
    assert "\n" not in str(caught.value)


def test_no_drafter_ships_for_a_model_that_is_not_in_the_registry() -> None:
    assert drafter_file.shipped("/home/me/model.gguf") is None
