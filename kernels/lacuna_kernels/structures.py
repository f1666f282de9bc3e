"""The C library's structs and the signatures of its functions, and the checks of what is given to them."""

from collections.abc import Sequence
from ctypes import POINTER, Structure, c_float, c_int, c_int64, c_void_p

import torch
from torch import Tensor

from lacuna_kernels.quantised import BLOCK, GROUP, FourBitWeight


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
        *(("head", c_int64), ("tail", c_int64)),
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
# A row of so many floats, and a tile of keys of so wide a head, are on the stack of a thread (``quantize_norm`` in
# ``csrc/linear.h``, ``score`` in ``csrc/attention.h``).
WIDEST_ROW, WIDEST_HEAD = 32_768, 512


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


def sizes(out: int, width: int, of: int = WIDTH) -> None:
    """The outputs and inputs of a linear."""
    require(out % WIDTH == 0 and width > 0 and width % of == 0, f"a linear of {out} outputs and {width} inputs")


def codes(given: Tensor, dtype: torch.dtype) -> None:
    """8-bit codes [out, in]."""
    require(given.ndim == 2, f"codes of {given.ndim} dimensions")
    sizes(*given.shape)
    tensor("the codes", given, dtype, given.shape)


def four_bit(weight: FourBitWeight) -> None:
    """A weight in 4 bit."""
    require(weight.codes.ndim == 2, f"codes of {weight.codes.ndim} dimensions")
    out, width = weight.codes.shape
    sizes(out, width, 2 * GROUP)
    for name, columns in (("codes", width), ("scale", width // GROUP), ("minimum", width // GROUP)):
        tensor(name, getattr(weight, name), torch.uint8, (out, columns))
    for name in ("step", "lift"):
        tensor(name, getattr(weight, name), torch.float32, (out, -(-width // BLOCK)))


def linear(packed: Tensor, scale: Tensor, bias: Tensor | None, blocks: Tensor | None) -> None:
    """A packed linear, its first outputs in 4 bit if it has ``blocks``."""
    codes(packed, torch.uint8)
    large, width = packed.shape
    tensor("the scale", scale, torch.float32, (large,))
    small = 0
    if blocks is not None:
        small = len(blocks)
        sizes(small, width, 2 * GROUP)
        tensor("the blocks", blocks, torch.uint8, (small, -(-width // BLOCK) * BLOCK_BYTES))
    require(small + large > 0, "a linear without outputs")
    if bias is not None:
        tensor("the bias", bias, torch.float32, (small + large,))


def pairs(given: Sequence[tuple[int, int, int, int]], linears: Sequence[tuple[int, int]]) -> None:
    """Additions to the linears of a layer, of ``linears`` outputs and inputs: one each, all of the same rank.

    An addition is given as the outputs and inputs of its low part, then those of its high part.
    """
    rank = given[0][0] if given else 0
    require(0 < rank <= WIDEST_ROW, f"additions of rank {rank}")
    expected = [(rank, width, out, rank) for out, width in linears]
    require(list(given) == expected, f"additions {list(given)}, expected {expected}")


def head_width(
    heads: int, groups: int, norms: Sequence[Tensor], linears: Sequence[tuple[int, int]], hidden: int
) -> int:
    """The width of a head in a layer whose sizes fit together.

    ``linears`` are the outputs and inputs of the linears for queries, keys and values, for the output of attention, for
    gate and up, and for down.
    """
    (_, mixed), (_, inner) = linears[1], linears[3]
    require(groups > 0 and heads > 0 and heads % groups == 0, f"{heads} heads with {groups} keys")
    width = mixed // heads
    require(width % WIDTH == 0 and 0 < width <= WIDEST_HEAD, f"heads of width {width}")
    require(0 < hidden <= WIDEST_ROW, f"rows of width {hidden}")
    expected = [((heads + 2 * groups) * width, hidden), (hidden, heads * width), (2 * inner, hidden), (hidden, inner)]
    require(list(linears) == expected, f"a layer of linears {list(linears)}, expected {expected}")
    for norm in norms:
        tensor("a norm", norm, torch.float32, (hidden,))
    return width
