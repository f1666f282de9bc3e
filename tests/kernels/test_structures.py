"""The library in C reads and writes by the sizes that it is given, so tensors of other sizes do not reach it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from lacuna_kernels import empty_keys, fold_mask, native
from lacuna_kernels.native import AddedRows, KeptRows, LayerParts, NativeKernels, NativeLayers, PackedLinear, PackedPair
from lacuna_kernels.quantised import FourBitWeight, quantized

HEADS, GROUPS, WIDTH, HIDDEN, INNER, ROWS = 2, 1, 32, 64, 96, 3
QKV = (HEADS + 2 * GROUPS) * WIDTH
CPU = torch.device("cpu")

pytestmark = pytest.mark.skipif(not native.supported(), reason="this CPU has none of the instructions")


def linear(kernels: NativeKernels, out: int, width: int) -> PackedLinear:
    return kernels.pack(torch.ones((out, width), dtype=torch.int8), torch.ones(out), None)


def parts(kernels: NativeKernels) -> LayerParts:
    return LayerParts(
        torch.ones(HIDDEN),
        linear(kernels, QKV, HIDDEN),
        linear(kernels, HIDDEN, HEADS * WIDTH),
        torch.ones(HIDDEN),
        linear(kernels, 2 * INNER, HIDDEN),
        linear(kernels, HIDDEN, INNER),
    )


def pair(kernels: NativeKernels, out: int, width: int, rank: int = 32) -> PackedPair:
    return PackedPair(linear(kernels, rank, width), linear(kernels, out, rank))


def additions(kernels: NativeKernels, rank: int = 32) -> dict[str, PackedPair]:
    return {
        "qkv": pair(kernels, QKV, HIDDEN, rank),
        "output": pair(kernels, HIDDEN, HEADS * WIDTH, rank),
        "gate_up": pair(kernels, 2 * INNER, HIDDEN, rank),
        "down": pair(kernels, HIDDEN, INNER, rank),
    }


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="the kernels cannot read this") as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "codes",
    [
        torch.ones((64, 30), dtype=torch.int8),
        torch.ones((33, 64), dtype=torch.int8),
        torch.ones((64, 0), dtype=torch.int8),
        torch.ones(64, dtype=torch.int8),
        torch.ones((64, 64)),
    ],
)
def test_codes_of_other_shapes_are_not_packed(kernels: NativeKernels, codes: Tensor) -> None:
    refused(lambda: kernels.packed(codes))


@pytest.mark.parametrize("part", FourBitWeight._fields)
def test_a_weight_in_4_bit_with_a_short_part_is_not_packed(kernels: NativeKernels, part: str) -> None:
    weight = quantized(torch.ones(64, 128))
    refused(lambda: kernels.packed_blocks(weight._replace(**{part: getattr(weight, part)[:32]})))
    refused(lambda: kernels.packed_blocks(weight._replace(**{part: getattr(weight, part).double()})))


def test_a_linear_of_parts_that_do_not_fit_is_not_made(kernels: NativeKernels) -> None:
    packed, scale = kernels.packed(torch.ones((64, 128), dtype=torch.int8)), torch.ones(64)
    blocks = kernels.packed_blocks(quantized(torch.ones(32, 128)))
    kernels.bind(packed, scale, torch.ones(96), blocks)
    for given in (
        (packed, torch.ones(63), None, None),
        (packed, scale, torch.ones(32), None),
        (packed, scale, torch.ones(64), blocks),
        (packed, scale, None, blocks[:, :-1].contiguous()),
        (packed, scale, None, blocks[:16]),
        (packed[:, ::2], scale, None, None),
        (packed.float(), scale, None, None),
    ):
        refused(lambda given=given: kernels.bind(*given))


def test_a_linear_takes_no_input_of_another_width_and_gives_no_row_that_it_has_not(kernels: NativeKernels) -> None:
    made = linear(kernels, 64, 128)
    refused(lambda: kernels.linear(torch.ones(3, 96), made))
    refused(lambda: kernels.linear(torch.ones(3, 128).double(), made))
    refused(lambda: kernels.first(made, 96))
    refused(lambda: kernels.first(made, 30))
    for ids in ([64], [0, -1], [2**40]):
        with pytest.raises(IndexError):
            kernels.lookup(torch.tensor(ids), made)
    assert kernels.lookup(torch.tensor([[63]]), made).shape == (1, 1, 128)


@pytest.mark.parametrize(
    "change",
    [
        lambda kernels: {"attn_norm": torch.ones(32)},
        lambda kernels: {"mlp_norm": torch.ones(32)},
        lambda kernels: {"mlp_norm": torch.ones(HIDDEN).double()},
        lambda kernels: {"qkv": linear(kernels, QKV, 96)},
        lambda kernels: {"qkv": linear(kernels, QKV - 32, HIDDEN)},
        lambda kernels: {"output": linear(kernels, 96, HEADS * WIDTH)},
        lambda kernels: {"gate_up": linear(kernels, 2 * INNER - 32, HIDDEN)},
        lambda kernels: {"down": linear(kernels, HIDDEN, 2 * INNER)},
    ],
)
def test_odd_parts_are_refused(kernels: NativeKernels, change: Callable[[NativeKernels], dict[str, object]]) -> None:
    good = parts(kernels)
    NativeLayers(kernels, [good, good], HEADS, GROUPS, 1e-5)
    refused(lambda: NativeLayers(kernels, [good, replace(good, **change(kernels))], HEADS, GROUPS, 1e-5))


@pytest.mark.parametrize(
    "change",
    [
        lambda kernels: {"qkv": pair(kernels, QKV, 96)},
        lambda kernels: {"qkv": pair(kernels, QKV - 32, HIDDEN)},
        lambda kernels: {"output": pair(kernels, HIDDEN, HEADS * WIDTH, 64)},
        lambda kernels: {"gate_up": pair(kernels, INNER, HIDDEN)},
        lambda kernels: {"down": PackedPair(linear(kernels, 32, INNER), linear(kernels, HIDDEN, 64))},
    ],
)
def test_layers_with_additions_that_do_not_fit_are_not_made(
    kernels: NativeKernels, change: Callable[[NativeKernels], dict[str, PackedPair]]
) -> None:
    plain, whole = parts(kernels), additions(kernels)
    good, odd = replace(plain, added=[whole]), replace(plain, added=[whole | change(kernels)])
    NativeLayers(kernels, [good, good], HEADS, GROUPS, 1e-5)
    lacking = replace(plain, added=[{name: one for name, one in whole.items() if name != "down"}])
    other, ranks = (
        replace(plain, added=added) for added in ([additions(kernels, 64)], [whole, additions(kernels, 64)])
    )
    for several in ([odd], [good, odd], [odd, odd], [lacking], [good, plain], [plain, good], [good, other], [ranks]):
        refused(lambda several=several: NativeLayers(kernels, several, HEADS, GROUPS, 1e-5))


@pytest.mark.parametrize(("heads", "groups"), [(64, 1), (2, 2), (3, 1), (2, 0), (0, 0)])
def test_layers_of_other_heads_are_not_made(kernels: NativeKernels, heads: int, groups: int) -> None:
    refused(lambda: NativeLayers(kernels, [parts(kernels)], heads, groups, 1e-5))


def test_rows_that_are_wider_than_a_stack_are_refused(kernels: NativeKernels) -> None:
    wide = 32_768 + 32
    made = replace(
        parts(kernels),
        attn_norm=torch.ones(wide),
        mlp_norm=torch.ones(wide),
        qkv=linear(kernels, QKV, wide),
        output=linear(kernels, wide, HEADS * WIDTH),
        gate_up=linear(kernels, 64, wide),
        down=linear(kernels, wide, 32),
    )
    refused(lambda: NativeLayers(kernels, [made], HEADS, GROUPS, 1e-5))


def test_a_pass_takes_only_rows_and_stores_of_its_layers(kernels: NativeKernels) -> None:
    layers = NativeLayers(kernels, [parts(kernels)], HEADS, GROUPS, 1e-5)
    x, turn = torch.ones(ROWS, HIDDEN), torch.ones(1, ROWS, WIDTH)

    def kept(
        count: int = ROWS,
        shape: tuple[int, ...] = (1, GROUPS, 40, WIDTH),
        seen: range = range(ROWS),
        mask: Tensor | None = None,
        runs: list[tuple[int, int]] | None = None,
    ) -> KeptRows:
        values = torch.zeros(shape, dtype=torch.bfloat16)
        folded = None if mask is None else fold_mask(mask, 1, torch.bfloat16)
        of_runs = None if runs is None else np.array(runs, dtype=np.int64).reshape(-1, 2)
        return KeptRows(count, empty_keys(shape, CPU, torch.bfloat16), values, seen, folded, of_runs)

    layers(x, turn, turn, [kept()])
    gating = NativeLayers(kernels, [replace(parts(kernels), added=[additions(kernels)])], HEADS, GROUPS, 1e-5)
    gating(x, turn, turn, [kept()], [AddedRows(0, ROWS, 0)])
    everywhere = torch.ones((ROWS, ROWS), dtype=torch.bool)
    layers(x, turn, turn, [kept(mask=everywhere)])
    twice = turn.expand(2, -1, -1)
    layers(x, twice, twice, [kept(runs=[(1, 1), (ROWS, 0)])])
    for wrong in (
        lambda: layers(x[:, :32], turn, turn, [kept()]),
        lambda: layers(x, turn[..., :16], turn, [kept()]),
        lambda: layers(x, turn, turn[:, :2], [kept()]),
        lambda: layers(x, turn[:0], turn[:0], [kept()]),
        lambda: layers(x, twice, turn, [kept()]),
        lambda: layers(x, twice, twice, [kept(runs=[])]),
        lambda: layers(x, twice, twice, [kept(runs=[(1, 0), (2, 1)])]),
        lambda: layers(x, twice, twice, [kept(runs=[(0, 0), (ROWS, 1)])]),
        lambda: layers(x, twice, twice, [kept(runs=[(2, 0), (2, 1), (ROWS, 0)])]),
        lambda: layers(x, twice, twice, [kept(runs=[(ROWS, 2)])]),
        lambda: layers(x, twice, twice, [kept(runs=[(ROWS, -1)])]),
        lambda: layers(x, turn, turn, []),
        lambda: layers(x, turn, turn, [kept()], [AddedRows(0, 1, 0)]),
        lambda: gating(x, turn, turn, [kept()], [AddedRows(0, ROWS + 1, 0)]),
        lambda: gating(x, turn, turn, [kept()], [AddedRows(-1, 2, 0)]),
        lambda: gating(x, turn, turn, [kept()], [AddedRows(0, 1, 1)]),
        lambda: gating(x, turn, turn, [kept()], [AddedRows(0, 2, 0), AddedRows(1, 1, 0)]),
        lambda: layers(x, turn, turn, [kept(count=2)]),
        lambda: layers(x, turn, turn, [kept(), kept()]),
        lambda: layers(x, turn, turn, [kept(shape=(0, GROUPS, 40, WIDTH))]),
        lambda: layers(x, turn, turn, [kept(shape=(1, 2, 40, WIDTH))]),
        lambda: layers(x, turn, turn, [kept(shape=(1, GROUPS, 40, 64))]),
        lambda: layers(x, turn, turn, [kept(seen=range(39, 42))]),
        lambda: layers(x, turn, turn, [kept(seen=range(-2, 1))]),
        lambda: layers(x, turn, turn, [kept(seen=range(2))]),
        lambda: layers(x, turn, turn, [kept(mask=everywhere[:, :2])]),
        lambda: layers(x, turn, turn, [kept(mask=everywhere[:2])]),
    ):
        refused(wrong)
