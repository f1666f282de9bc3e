"""The library in C reads and writes by the sizes that it is given, so tensors of other sizes do not reach it."""

from collections.abc import Callable

import pytest
import torch

from lacuna_kernels import empty_keys, native
from lacuna_kernels.native import AddedRows, KeptRows, LayerParts, NativeKernels, NativeLayers, PackedLinear
from lacuna_kernels.quantised import quantized
from lacuna_model.core.context import finished

HEADS, GROUPS, WIDTH, HIDDEN, INNER, ROWS, RANK = 2, 1, 32, 64, 96, 3, 32
SIZES = {
    "qkv": ((HEADS + 2 * GROUPS) * WIDTH, HIDDEN),
    "output": (HIDDEN, HEADS * WIDTH),
    "gate_up": (2 * INNER, HIDDEN),
    "down": (HIDDEN, INNER),
}

pytestmark = pytest.mark.skipif(not native.supported(), reason="this CPU has none of the instructions")


def linear(kernels: NativeKernels, out: int, width: int) -> PackedLinear:
    return kernels.bind(kernels.packed(torch.ones((out, width), dtype=torch.int8)), torch.ones(out), None)


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="the kernels cannot read this") as caught:
        call()
    assert "\n" not in str(caught.value)


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
        (packed[:, :48].contiguous(), scale, None, None),
        (packed[:33], scale[:33], None, None),
        (packed[0], scale, None, None),
        (packed.float(), scale, None, None),
    ):
        refused(lambda given=given: kernels.bind(*given))


def test_a_linear_takes_no_input_of_another_width_and_gives_no_row_that_it_has_not(kernels: NativeKernels) -> None:
    made = linear(kernels, 64, 128)
    refused(lambda: kernels.linear(torch.ones(3, 96), made))
    refused(lambda: kernels.linear(torch.ones(3, 128).double(), made))
    for ids in ([64], [0, -1], [2**40]):
        with pytest.raises(IndexError):
            kernels.lookup(torch.tensor(ids), made)
    assert kernels.lookup(torch.tensor([[63]]), made).shape == (1, 1, 128)


def test_a_pass_takes_only_rows_and_stores_of_its_layers(kernels: NativeKernels) -> None:
    norm, linears = torch.ones(HIDDEN), {name: linear(kernels, *sizes) for name, sizes in SIZES.items()}
    added = {name: (linear(kernels, RANK, width), linear(kernels, out, RANK)) for name, (out, width) in SIZES.items()}
    layers = NativeLayers(kernels, [LayerParts(norm, norm, linears, [added])], HEADS, GROUPS, 1e-5)
    x, turn = torch.ones(ROWS, HIDDEN), torch.ones(1, ROWS, WIDTH)

    def kept(count: int = ROWS, tail: int = 0) -> KeptRows:
        values = torch.zeros((1, GROUPS, 40, WIDTH), dtype=torch.bfloat16)
        return KeptRows(count, empty_keys(values.shape, values.device, values.dtype), values, tail, None)

    finished(layers.in_turns(x, turn, turn, [kept()], [AddedRows(0, ROWS, 0)]))
    for wrong in (
        (x[:, :32], turn, turn, [kept()]),
        (x, turn[..., :16], turn, [kept()]),
        (x, turn, turn[:, :2], [kept()]),
        (x, turn.expand(2, -1, -1), turn, [kept()]),
        (x, turn, turn, []),
        (x, turn, turn, [kept()], [AddedRows(0, ROWS + 1, 0)]),
        (x, turn, turn, [kept()], [AddedRows(0, 1, 1)]),
        (x, turn, turn, [kept(count=2)]),
        (x, turn, turn, [kept(), kept()]),
        (x, turn, turn, [kept(tail=38)]),
        (x, turn, turn, [kept(tail=-1)]),
    ):
        refused(lambda wrong=wrong: finished(layers.in_turns(*wrong)))
