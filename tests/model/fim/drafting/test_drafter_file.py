"""The file of a drafter: written in 8 bit, read for the base it was trained for, refused in one line otherwise."""

import copy
from pathlib import Path

import pytest
import torch
from msgspec.structs import replace
from tests.model import tiny_drafter
from tests.model.fim import tiny_fim

from lacuna_kernels import native
from lacuna_model.core.errors import WeightsError
from lacuna_model.fim.drafting import drafter_file
from lacuna_model.network.drafter import DrafterConfig
from lacuna_model.network.linear import NativeLinear, quantize_rows

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


@pytest.mark.skipif(not native.supported(), reason="this CPU has none of the instructions")
def test_where_a_head_is_cut_so_is_the_vocabulary(tmp_path: Path, compiled: Path) -> None:
    path = tmp_path / "drafter.safetensors"
    config = DrafterConfig(64, 32)
    drawn = torch.Generator().manual_seed(0)
    tensors = {name: torch.randn(shape, generator=drawn) for name, shape in drafter_file.linears(config).items()}
    drafter_file.write(path, config, tensors | {"norm": torch.ones(64), "vocabulary": torch.arange(3, 300)})
    base, kernels = copy.copy(MODEL.transformer), native.load(compiled, 1)
    assert kernels is not None
    base.config = replace(base.config, hidden_size=64)
    base.head = NativeLinear(kernels, *quantize_rows(torch.randn(128, 64, generator=drawn)))
    found = drafter_file.read(path, base, kernels)
    assert found.vocabulary.tolist() == list(range(3, 3 + 96))  # of 125 tokens as many as the kernels support
    assert found.logits(torch.ones(2, 64)).shape == (2, 96)
