from pathlib import Path

import msgspec
import pytest
import torch
from tests.model import tiny, tiny_masks
from tests.model.network.test_transformer import NATIVE, kernels
from torch import Tensor

from lacuna_kernels.native import AddedRows, NativeKernels
from lacuna_model.loading import rows_file
from lacuna_model.network.arena import Arena, PassPart
from lacuna_model.network.assembly import FUSED, build_transformer, fuse, linear_from
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.linear import quantize_rows
from lacuna_model.network.transformer import Transformer

__all__ = ["kernels"]
CONFIG = msgspec.structs.replace(tiny.CONFIG, attention_bias=True)
RANK = 32
MASKS = [-1, -2, -3, -4]


@pytest.mark.parametrize("outputs", [64, 77])
def test_8_bit_is_close_to_dense_with_its_bias_for_any_number_of_outputs(kernels: NativeKernels, outputs: int) -> None:
    drawn = torch.Generator().manual_seed(0)
    weight, bias, x = (torch.randn(shape, generator=drawn) for shape in ((outputs, 96), (outputs,), (5, 96)))
    codes, scale = quantize_rows(weight)
    expected = torch.nn.functional.linear(x, weight, bias)
    for kept in (kernels, None):
        got = linear_from({"a": codes, "a.scale": scale, "a.bias": bias}, "a", kept)(x)
        assert (got - expected).norm() / expected.norm() < 0.02


def test_a_mask_row_reads_with_the_sum_of_the_weight_and_its_addition() -> None:
    state, masks = fuse(tiny.state(CONFIG), CONFIG), tiny_masks.tensors(CONFIG)
    model = build_transformer(CONFIG, state).with_additions("masks", *tiny_masks.rows(CONFIG))
    names = [f"layers.{index}.{name}" for index in range(CONFIG.num_layers) for name in FUSED]
    merged = state | {name: state[name] + masks[name + ".high"] @ masks[name + ".low"] for name in names}
    expected = build_transformer(CONFIG, merged)
    x, positions = model.embedded(torch.tensor([MASKS]), True), torch.arange(40, 44)
    mask = torch.ones((4, 4), dtype=torch.bool).tril()
    assert torch.equal(x[0], masks["masks"])
    with torch.inference_mode():
        got = model.hidden(x, positions, [PassPart(4, None, mask)], [AddedRows(0, 4, 0)])
        torch.testing.assert_close(got, tiny.hidden(expected, x, positions, mask), atol=1e-4, rtol=1e-4)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tiny_masks.write(tmp_path / "tiny.masks.safetensors", NATIVE, RANK)


def native(kernels: NativeKernels, config: ModelConfig = NATIVE) -> Transformer:
    return build_transformer(config, tiny.quantized(fuse(tiny.state(config), config)), kernels=kernels)


def behind_text(model: Transformer, kinds: list[str]) -> tuple[Tensor, Arena]:
    """The states of six rows in one pass after ten others, the last of which are mask rows, and the arena."""
    arena = Arena(model.config, torch.device("cpu"), torch.bfloat16)
    ids = [20, 21, 22, 23, *([-1, -2] if model.masks is not None else [24, 25])]
    with torch.inference_mode():
        for first, given, named in ((0, list(range(3, 13)), [""] * 10), (10, ids, kinds)):
            arena.tail = first
            part = PassPart(len(given), arena, causal=True, kinds=named)
            states = model.read(given, range(first, first + len(given)), [part]).states
    return states, arena


@pytest.mark.parametrize(("kind", "rank"), [("masks", RANK), ("edit", RANK), ("edit", 20)])
def test_rows_in_native_kernels_are_as_exact_as_tokens(
    kernels: NativeKernels, tmp_path: Path, kind: str, rank: int
) -> None:
    file = tiny_masks.write(tmp_path / "tiny.safetensors", NATIVE, rank, kind=kind)
    kinds = [""] * 6 if kind == "masks" else ["", "edit", "edit", "", "edit", ""]
    exact = rows_file.read(file, build_transformer(NATIVE, fuse(tiny.state(NATIVE), NATIVE)))
    expected, _ = behind_text(exact, kinds)
    got, _ = behind_text(rows_file.read(file, native(kernels)), kinds)
    assert ((got - expected).norm(dim=1) / expected.norm(dim=1)).max() < 0.12  # another addition is over 1 off


def test_text_before_rows_with_an_addition_is_the_same(kernels: NativeKernels, file: Path, tmp_path: Path) -> None:
    edit = tiny_masks.write(tmp_path / "tiny.edit.safetensors", NATIVE, RANK, kind="edit")
    plain = native(kernels)
    several = rows_file.read(file, rows_file.read(edit, plain))
    assert list(several.added) == ["masks", "edit"]
    alone, before = behind_text(plain, [""] * 6)
    for kinds in (["", "", "edit", "edit", "", ""], ["", "", "", "edit", "edit", ""]):
        states, after = behind_text(rows_file.read(edit, plain), kinds)
        first = kinds.index("edit")
        assert torch.equal(states[:first], alone[:first])
        assert not torch.equal(states[first], alone[first])
        for one, other in ((after.keys, before.keys), (after.values, before.values)):
            assert torch.equal(one[:, :, : 10 + first], other[:, :, : 10 + first])
    states, _ = behind_text(several, ["", "", "edit", "edit", "", ""])
    assert torch.equal(states[:2], alone[:2])
    (own, _), (other, _) = behind_text(several, ["", "", "edit", "edit", "", ""]), behind_text(several, [""] * 6)
    assert not torch.equal(own[2:4], other[2:4])
    off, _ = behind_text(rows_file.read(edit, plain), [""] * 6)
    assert torch.equal(off, alone)


def test_rows_of_a_kind_that_a_model_lacks_are_refused() -> None:
    model = build_transformer(CONFIG, fuse(tiny.state(CONFIG), CONFIG))
    for ids, kinds in (([5, -1], []), ([5, 6], ["", "edit"])):
        with pytest.raises(ValueError, match=r"no additions for rows of the kind '(masks|edit)'"):
            model.read(ids, range(2), [PassPart(2, None, causal=True, kinds=kinds)])
