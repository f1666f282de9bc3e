"""The C library's structs and the signatures of its functions, and the checks of what is given to them."""

from collections.abc import Sequence
from ctypes import POINTER, Structure, c_float, c_int, c_int64, c_void_p

import torch
from torch import Tensor

from lacuna_kernels.quantised import BLOCK, GROUP


class Linear(Structure):
    """A packed linear: ``width`` inputs, ``out`` outputs, the first ``small`` of them in 4 bit."""

    _fields_ = (
        *((name, c_void_p) for name in ("blocks", "weight", "scale", "bias")),
        *((name, c_int64) for name in ("width", "out", "small")),
    )


class Pair(Structure):
    """An addition to a linear, or NULL twice."""

    _fields_ = (("low", POINTER(Linear)), ("high", POINTER(Linear)))


# The linears of a layer, in the order of the struct.
LINEARS = ("qkv", "output", "gate_up", "down")


class Layer(Structure):
    """The parts of a layer."""

    _fields_ = (
        *(("attn_norm", c_void_p), ("mlp_norm", c_void_p)),
        *((name, POINTER(Linear)) for name in LINEARS),
        *(("added_" + name, POINTER(Pair)) for name in LINEARS),
    )


class Span(Structure):
    """Rows of a pass that have the additions of one kind."""

    _fields_ = tuple((name, c_int64) for name in ("first", "count", "kind"))


class Rows(Structure):
    """The rows of a pass, with ``turns`` angles each, and the ``spans`` of those with additions.

    If ``kept_alone``, the last layer writes their keys and values, and does nothing else.
    """

    _fields_ = (
        *((name, c_int64) for name in ("count", "turns", "heads", "groups", "width")),
        *(("spans", POINTER(Span)), ("num_spans", c_int64)),
        *(("cos", c_void_p), ("sin", c_void_p), ("eps", c_float), ("kept_alone", c_int)),
    )


class Arena(Structure):
    """Keys and values of all layers, with strides in elements."""

    _fields_ = (
        *(("keys", c_void_p), ("values", c_void_p)),
        *((name, c_int64) for name in ("key_layer", "key_group", "key_column")),
        *((name, c_int64) for name in ("value_layer", "value_group", "value_row")),
        ("tail", c_int64),
    )


class Mask(Structure):
    """What is added to the scores of a part's rows, or NULL."""

    _fields_ = (("added", c_void_p), ("start", c_int64))


class Part(Structure):
    """``count`` rows of a pass from row ``first``, which share an arena."""

    _fields_ = (
        *(("first", c_int64), ("count", c_int64), ("arena", Arena), ("mask", Mask)),
        *(("runs", c_void_p), ("num_runs", c_int64)),
    )


SIGNATURES = {
    "lacuna_pack": (c_void_p, c_int64, c_int64, c_void_p, c_int),
    "lacuna_pack_blocks": (*(c_void_p,) * 5, c_int64, c_int64, c_void_p, c_int),
    "lacuna_lookup": (POINTER(Linear), c_void_p, c_int64, c_void_p),
    "lacuna_linear": (c_void_p, c_int64, POINTER(Linear), c_void_p, c_int),
    "lacuna_layers": (
        *(c_void_p, POINTER(Rows), POINTER(Layer), c_int64, POINTER(Part)),
        *(c_int64, c_int),
    ),
}


# Widths of linears and of heads are multiples of it.
WIDTH = 32
# Bytes of a packed 4-bit weight for every ``BLOCK`` inputs of an output (``Block`` in ``csrc/linear.h``).
BLOCK_BYTES = 152


def require(holds: bool, what: str) -> None:
    """Raise ValueError where a condition does not hold."""
    if not holds:
        raise ValueError(f"the kernels cannot read this: {what}")


def tensor(name: str, given: Tensor, dtype: torch.dtype, shape: Sequence[int]) -> None:
    """A contiguous tensor on the CPU."""
    fits = given.dtype is dtype and tuple(given.shape) == tuple(shape) and given.device.type == "cpu"
    if not (fits and given.is_contiguous()):
        found = f"{given.dtype} {list(given.shape)} on {given.device}"
        raise ValueError(f"the kernels cannot read this: {name} is {found}, expected {dtype} {list(shape)}")


def linear(packed: Tensor, scale: Tensor, bias: Tensor | None, blocks: Tensor | None) -> None:
    """A packed linear, its first outputs in 4 bit if it has ``blocks``."""
    require(packed.ndim == 2, f"codes of {packed.ndim} dimensions")
    (large, width), small = packed.shape, 0 if blocks is None else len(blocks)
    whole = large % WIDTH == small % WIDTH == 0 and width % (2 * GROUP if small else WIDTH) == 0
    require(whole and width > 0 and small + large > 0, f"a linear of {small} and {large} outputs and {width} inputs")
    tensor("the codes", packed, torch.uint8, packed.shape)
    tensor("the scale", scale, torch.float32, (large,))
    if blocks is not None:
        tensor("the blocks", blocks, torch.uint8, (small, -(-width // BLOCK) * BLOCK_BYTES))
    if bias is not None:
        tensor("the bias", bias, torch.float32, (small + large,))
