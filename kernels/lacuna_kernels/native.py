"""8-bit and 4-bit linears and whole layers in C (``csrc``), for the vector instructions of several CPUs.

The library's structs, the signatures of its functions, and the checks of what is given to them, come first.

The wheel of a platform has the library for all of them; elsewhere the system's C compiler builds it once, into the
user's cache. Without a compiler or supported instructions, torch's own operators run.
"""

import contextlib
import ctypes
import logging
import tempfile
from collections.abc import Generator, Mapping, Sequence
from ctypes import POINTER, Structure, byref, c_float, c_int, c_int64, c_void_p, pointer
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels.compiling import INSTRUCTION_SETS, InstructionSet, compiled, opened
from lacuna_kernels.operations import FoldedMask
from lacuna_kernels.quantised import BLOCK, GROUP, FourBitWeight

log = logging.getLogger(__name__)

# So many layers take some milliseconds per call, between which other threads of the program may run.
LAYERS_PER_CALL = 4


# Widths of linears and of heads are multiples of it.
WIDTH = 32
# Bytes of a packed 4-bit weight for every ``BLOCK`` inputs of an output (``Block`` in ``csrc/linear.h``).
BLOCK_BYTES = 152


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
    "lacuna_layers": (c_void_p, POINTER(Rows), POINTER(Layer), c_int64, POINTER(Part), c_int64, c_int),
}


def _require(holds: bool, what: str) -> None:
    """Raise ValueError where a condition does not hold."""
    if not holds:
        raise ValueError(f"the kernels cannot read this: {what}")


def _check_tensor(name: str, given: Tensor, dtype: torch.dtype, shape: Sequence[int]) -> None:
    """A contiguous tensor on the CPU."""
    fits = given.dtype is dtype and tuple(given.shape) == tuple(shape) and given.device.type == "cpu"
    if not (fits and given.is_contiguous()):
        found = f"{given.dtype} {list(given.shape)} on {given.device}"
        raise ValueError(f"the kernels cannot read this: {name} is {found}, expected {dtype} {list(shape)}")


@dataclass(frozen=True, slots=True)
class PackedLinear:
    """A linear in the library's form; ``tensors`` own the memory that ``struct`` points to."""

    struct: Linear
    tensors: tuple[Tensor, ...]
    out: int

    @property
    def width(self) -> int:
        """The number of inputs."""
        return int(self.struct.width)


class AddedRows(NamedTuple):
    """So many ``rows`` of a pass, from row ``first`` on, that have the additions of a ``kind``."""

    first: int
    rows: int
    kind: int


# What some rows have added to a linear: ``high(low(x))``.
PackedPair = tuple[PackedLinear, PackedLinear]


@dataclass(frozen=True, slots=True)
class LayerParts:
    """The parts of one layer: norms in float32, and by their names the four linears, with projections stacked.

    ``added`` has for each kind of additions, by the names of the linears, what rows of that kind have added.
    """

    attn_norm: Tensor
    mlp_norm: Tensor
    linears: Mapping[str, PackedLinear]
    added: Sequence[Mapping[str, PackedPair]] = ()


class NativeKernels:
    """The library, with tensors in and out, on at most ``threads`` threads.

    All tensors are float32 except keys, values and masks, which are bfloat16. Raises ValueError for tensors that are of
    another type or shape: the library does not check what it is given.
    """

    def __init__(self, library: ctypes.PyDLL, instructions: InstructionSet, threads: int) -> None:
        self.instructions = instructions
        self.threads = threads
        self._library = library
        for name, types in SIGNATURES.items():
            getattr(self._library, name).argtypes = types

    @property
    def path(self) -> Path:
        """The library's file."""
        return Path(self._library._name)

    def packed(self, codes: Tensor) -> Tensor:
        """Codes int8 [out, in], both multiples of ``WIDTH``, in the order of this machine's instructions, as uint8."""
        codes, packed = codes.contiguous(), torch.empty(codes.shape, dtype=torch.uint8)
        self.call("lacuna_pack", codes.data_ptr(), *codes.shape, packed.data_ptr())
        return packed

    def packed_blocks(self, weight: FourBitWeight) -> Tensor:
        """A 4-bit weight in the order of this machine's instructions, uint8 [out, bytes of an output]."""
        parts = FourBitWeight(*(part.contiguous() for part in weight))
        out, width = parts.codes.shape
        packed = torch.empty((out, -(-width // BLOCK) * BLOCK_BYTES), dtype=torch.uint8)
        self.call("lacuna_pack_blocks", *(part.data_ptr() for part in parts), out, width, packed.data_ptr())
        return packed

    def bind(self, packed: Tensor, scale: Tensor, bias: Tensor | None, blocks: Tensor | None = None) -> PackedLinear:
        """A linear: its first outputs from :meth:`packed_blocks`, if any, and the others from :meth:`packed`."""
        scale, bias = scale.float().contiguous(), bias if bias is None else bias.float().contiguous()
        _require(packed.ndim == 2, f"codes of {packed.ndim} dimensions")
        (large, width), small = packed.shape, 0 if blocks is None else len(blocks)
        whole = large % WIDTH == small % WIDTH == 0 and width % (2 * GROUP if small else WIDTH) == 0
        fits = whole and width > 0 and small + large > 0
        _require(fits, f"a linear of {small} and {large} outputs and {width} inputs")
        _check_tensor("the codes", packed, torch.uint8, packed.shape)
        _check_tensor("the scale", scale, torch.float32, (large,))
        if blocks is not None:
            _check_tensor("the blocks", blocks, torch.uint8, (small, -(-width // BLOCK) * BLOCK_BYTES))
        if bias is not None:
            _check_tensor("the bias", bias, torch.float32, (small + large,))
        tensors = (blocks, packed, scale, bias)
        pointers = [None if part is None else part.data_ptr() for part in tensors]
        struct = Linear(*pointers, width, small + large, small)
        return PackedLinear(struct, tuple(part for part in tensors if part is not None), small + large)

    def linear(self, x: Tensor, linear: PackedLinear) -> Tensor:
        """``x W^T (+ b)``: ``x`` [..., in] -> [..., out]."""
        rows = x.contiguous().view(-1, x.shape[-1])
        _check_tensor("the input", rows, torch.float32, (len(rows), linear.width))
        y = torch.empty((len(rows), linear.out))
        self.call("lacuna_linear", rows.data_ptr(), len(rows), byref(linear.struct), y.data_ptr())
        return y.view(*x.shape[:-1], linear.out)

    def lookup(self, ids: Tensor, linear: PackedLinear) -> Tensor:
        """The weight's rows for ``ids`` [...] -> [..., in]; raises IndexError where there is no such row."""
        wanted = ids.contiguous().view(-1)
        _check_tensor("the ids", wanted, torch.int64, (len(wanted),))
        rows = torch.empty((len(wanted), linear.width))
        if self._library.lacuna_lookup(byref(linear.struct), wanted.data_ptr(), len(wanted), rows.data_ptr()):
            raise IndexError(f"an id is none of the {linear.out} rows of the weight")
        return rows.view(*ids.shape, linear.width)

    def call(self, name: str, *arguments: object) -> None:
        """Run a function of the library. Raises MemoryError where memory runs out."""
        function = getattr(self._library, name)
        if function(*arguments, self.threads):
            raise MemoryError(name)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Consecutive rows of a pass that share a store of keys and values; ``count`` of them.

    Their keys and values are written to the ``tail`` of ``keys`` [L, G, K, D], laid out by column (``empty_keys``), and
    ``values`` [L, G, K, D], by row; the rows attend to all up to their end that the ``mask`` lets them. Tokens of keys
    may have moved since they were read: ``runs``, int64 [n, 2], has for each run of keys that have moved as far its
    end, and which of the pass's angles queries have for it; None where none has moved.
    """

    count: int
    keys: Tensor
    values: Tensor
    tail: int
    mask: FoldedMask | None
    runs: NDArray[np.int64] | None = None

    def part(self, first: int, layer: int) -> Part:
        """The struct of these rows, the first of which is row ``first`` of the pass, from a layer on."""
        strides = (*map(self.keys.stride, (0, 1, 3)), *map(self.values.stride, (0, 1, 2)))
        arena = Arena(self.keys[layer].data_ptr(), self.values[layer].data_ptr(), *strides, self.tail)
        mask = Mask() if self.mask is None else Mask(self.mask.added.data_ptr(), self.mask.start)
        runs = (None, 0) if self.runs is None else (self.runs.ctypes.data, len(self.runs))
        return Part(first, self.count, arena, mask, *runs)


class NativeLayers:
    """Layers of one shape in few calls: attention over the arena's keys and values, and the gated MLP."""

    def __init__(
        self, kernels: NativeKernels, parts: Sequence[LayerParts], heads: int, groups: int, eps: float
    ) -> None:
        self._kernels = kernels
        self._parts = parts  # keeps alive what the structs point to
        self._shape = (heads, groups)
        self._eps = eps
        ranks = {low.out for kind in parts[0].added for low, _ in kind.values()}
        _require(len(ranks) <= 1, f"additions of the ranks {ranks}")
        output = parts[0].linears["output"]
        self._hidden, self._width = output.out, output.width // heads
        self._structs = (Layer * len(parts))()
        for struct, part in zip(self._structs, parts, strict=True):
            struct.attn_norm, struct.mlp_norm = part.attn_norm.data_ptr(), part.mlp_norm.data_ptr()
            for name in LINEARS:
                setattr(struct, name, pointer(part.linears[name].struct))
                pairs = (Pair * len(part.added))()
                for place, kind in enumerate(part.added):
                    pairs[place] = Pair(*(pointer(linear.struct) for linear in kind[name]))
                setattr(struct, "added_" + name, pairs)

    def in_turns(
        self,
        x: Tensor,
        cos: Tensor,
        sin: Tensor,
        kept: Sequence[KeptRows],
        added: Sequence[AddedRows] = (),
        *,
        layers: int = LAYERS_PER_CALL,
        kept_alone: bool = False,
    ) -> Generator[None, None, Tensor]:
        """The rows ``x`` [R, W] after all layers, with a pause after so many; ``kept`` has all of them, in order.

        ``cos`` and ``sin`` [T, R, D] rotate queries and keys, the first of them keys and queries for keys whose tokens
        have not moved. A row's result does not depend on the rows beside it. Those of ``added`` have the
        additions of their kind. The keys and values must stay where they are until the end. With ``kept_alone`` the
        rows have keys and values in every layer, and nothing else is known of them at the end.
        """
        x, cos, sin = x.clone(memory_format=torch.contiguous_format), cos.contiguous(), sin.contiguous()
        self._check(x, cos, sin, kept, added)
        turns, _, width = cos.shape
        spans = (Span * len(added))(*(Span(*one) for one in added))
        rows = Rows(len(x), turns, *self._shape, width, spans, len(added), cos.data_ptr(), sin.data_ptr(), self._eps)
        firsts = list(accumulate((one.count for one in kept), initial=0))[:-1]
        for layer in range(0, len(self._structs), layers):
            if layer:
                yield
            count = min(layers, len(self._structs) - layer)
            rows.kept_alone = kept_alone and layer + count == len(self._structs)
            parts = (Part * len(kept))(*(one.part(first, layer) for one, first in zip(kept, firsts, strict=True)))
            structs = byref(self._structs[layer])
            self._kernels.call("lacuna_layers", x.data_ptr(), byref(rows), structs, count, parts, len(kept))
        return x

    def _check(self, x: Tensor, cos: Tensor, sin: Tensor, kept: Sequence[KeptRows], added: Sequence[AddedRows]) -> None:
        """Raise ValueError for what the kernels would read or write beyond tensors."""
        rows, kinds = len(x), len(self._parts[0].added)
        _check_tensor("the input", x, torch.float32, (rows, self._hidden))
        for name, rotation in (("cos", cos), ("sin", sin)):
            _check_tensor(name, rotation, torch.float32, (len(cos), rows, self._width))
        fits = all(span.first + span.rows <= rows and span.kind < kinds for span in added)
        _require(fits, f"additions {added} to {rows} rows, with {kinds} kinds")
        _require(sum(one.count for one in kept) == rows, f"stores for other than {rows} rows")
        for one in kept:
            room = min(one.keys.shape[2], one.values.shape[2])
            _require(0 <= one.tail <= room - one.count, f"{one.count} rows at {one.tail} of {room}")


def supported() -> list[InstructionSet]:
    """The instruction sets that the CPU has, best first."""
    capabilities = torch.cpu.get_capabilities()
    return [found for found in INSTRUCTION_SETS if all(capabilities.get(name, False) for name in found.needs)]


def load(folder: Path, threads: int) -> NativeKernels | None:
    """The installed library, else the one of ``folder``, built where it is missing; None where it cannot be built.

    Where ``folder`` cannot be written, it is built for this process alone, which takes some seconds.
    """
    try:
        return build(folder, threads)
    except TimeoutError as error:
        log.warning("the model runs without its own kernels, more slowly: %s", error)
        return None
    except OSError as error:
        reason = error.strerror or str(error)
    try:
        with tempfile.TemporaryDirectory(prefix="lacuna-", ignore_cleanup_errors=True) as own:
            kernels = build(Path(own), threads)  # a loaded library does not need its file
            log.warning("%s is of no use (%s): the kernels are compiled at every start", folder, reason)
            return kernels
    except OSError as error:
        log.warning("the model runs without its own kernels, more slowly: %s", error.strerror or error)
    return None


def build(folder: Path, threads: int = 1, instructions: Sequence[InstructionSet] | None = None) -> NativeKernels:
    """As :func:`load`, for the first of ``instructions`` that the compiler supports. Raises OSError."""
    failure = OSError("the CPU has no instructions that the library has a form for")
    for candidate in supported() if instructions is None else instructions:
        try:
            return NativeKernels(_library(folder, candidate), candidate, threads)
        except TimeoutError:
            raise
        except OSError as error:
            failure = error
    raise failure


def _library(folder: Path, instructions: InstructionSet) -> ctypes.PyDLL:
    with contextlib.suppress(OSError):  # not in the wheel, or for a newer system than this one
        return opened(instructions.built)
    return compiled(folder, instructions)
