"""8-bit linears and whole halves of a layer in C (``csrc``), for the vector instructions of several CPUs.

The system's C compiler builds them once, into the user's cache. Where there is no compiler, or the CPU has none of the
instructions, torch's own operators do the work. The library shares torch's OpenMP threads.
"""

import contextlib
import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_float, c_int, c_int64, c_void_p
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lacuna_kernels.attention import FoldedMask
from lacuna_kernels.crew import Crew

SOURCES = sorted(Path(__file__).with_name("csrc").glob("*.[ch]"))
FLAGS = ("-O3", "-fopenmp", "-shared", "-fPIC")
# Widths of linears and of heads are multiples of it.
WIDTH = 32


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """Vector instructions that ``csrc/simd.h`` has a form for: torch's names of them, and the compiler's flags."""

    name: str
    needs: tuple[str, ...]
    flags: tuple[str, ...]


AVX2 = InstructionSet("AVX2", ("avx2", "fma3"), ("-mavx2", "-mfma"))
AVX_VNNI = InstructionSet("AVX-VNNI", (*AVX2.needs, "avx_vnni"), (*AVX2.flags, "-mavxvnni"))
AVX512 = InstructionSet(
    "AVX-512 VNNI",
    (*AVX2.needs, "avx512_f", "avx512_bw", "avx512_vl", "avx512_dq", "avx512_vnni"),
    (*AVX2.flags, "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni"),
)
AVX512_BF16 = InstructionSet("AVX-512 VNNI and BF16", (*AVX512.needs, "avx512_bf16"), (*AVX512.flags, "-mavx512bf16"))
NEON = InstructionSet("NEON", ("dot",), ("-march=armv8.2-a+dotprod",))
# Best first.
INSTRUCTION_SETS = (AVX512_BF16, AVX512, AVX_VNNI, AVX2, NEON)


class _Linear(Structure):
    _fields_ = (("weight", c_void_p), ("scale", c_void_p), ("bias", c_void_p), ("width", c_int64), ("out", c_int64))


class _Cache(Structure):
    _fields_ = (
        ("keys", c_void_p),
        ("values", c_void_p),
        *((name, c_int64) for name in ("key_group", "key_column", "value_group", "value_row", "count")),
    )


class _Mask(Structure):
    _fields_ = (("added", c_void_p), ("start", c_int64))


LINEAR, CACHE, MASK = POINTER(_Linear), POINTER(_Cache), POINTER(_Mask)
SIGNATURES = {
    "lacuna_pack": (c_void_p, c_int64, c_int64, c_void_p),
    "lacuna_linear": (c_void_p, c_int64, LINEAR, c_void_p, c_int),
    "lacuna_project": (
        *(c_void_p, c_int64, c_void_p, c_float, LINEAR, c_void_p, c_void_p),
        *(c_int64, c_int64, c_int64, c_void_p, c_void_p, c_int),
    ),
    "lacuna_finish": (
        *(c_void_p, c_int64, c_void_p, c_int64, c_int64, c_int64, CACHE, MASK),
        *(LINEAR, c_void_p, c_float, LINEAR, LINEAR, c_void_p, c_int),
    ),
}


@dataclass(frozen=True, slots=True)
class PackedLinear:
    """An 8-bit linear as the library reads it; ``tensors`` are what ``struct`` points to."""

    struct: _Linear
    tensors: tuple[Tensor, ...]
    out: int


class NativeKernels:
    """The library, with tensors in and out, on at most ``threads`` threads.

    Everything is float32 but keys, values and masks, which are bfloat16.
    """

    def __init__(self, path: Path, instructions: InstructionSet, threads: int) -> None:
        self.instructions = instructions
        self.crew = Crew(threads)
        # The interpreter's lock stays held: a call takes less than a millisecond, and to win the lock back from a
        # thread that computes takes five.
        self._library = ctypes.PyDLL(str(path))
        for name, types in SIGNATURES.items():
            getattr(self._library, name).argtypes = types

    def pack(self, codes: Tensor, scale: Tensor, bias: Tensor | None) -> PackedLinear:
        """``codes`` int8 [out, in], both multiples of ``WIDTH``; one scale per row [out]."""
        out, width = codes.shape
        codes, packed = codes.contiguous(), torch.empty(codes.numel(), dtype=torch.uint8)
        self._library.lacuna_pack(codes.data_ptr(), out, width, packed.data_ptr())
        tensors = tuple(part.float().contiguous() for part in (scale, bias) if part is not None)
        pointers = [part.data_ptr() for part in tensors]
        struct = _Linear(packed.data_ptr(), pointers[0], pointers[1] if bias is not None else None, width, out)
        return PackedLinear(struct, (packed, *tensors), out)

    def linear(self, x: Tensor, linear: PackedLinear) -> Tensor:
        """``x W^T (+ b)``: ``x`` [..., in] -> [..., out]."""
        rows = x.contiguous().view(-1, x.shape[-1])
        y = torch.empty((len(rows), linear.out))
        self._call("lacuna_linear", rows.data_ptr(), len(rows), byref(linear.struct), y.data_ptr())
        return y.view(*x.shape[:-1], linear.out)

    def project(
        self, x: Tensor, norm: Tensor, eps: float, qkv: PackedLinear, cos: Tensor, sin: Tensor, heads: int, groups: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """A layer's first half: query [H, R, D], key and value [G, R, D] of ``x`` [R, W].

        RMSNorm, one linear for all three, and rotary embedding by ``cos`` and ``sin`` [R, D].
        """
        rows, width = cos.shape
        turned, value = torch.empty((heads + groups, rows, width)), torch.empty((groups, rows, width))
        x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
        angles = (cos.data_ptr(), sin.data_ptr())
        shape = (heads, groups, width, turned.data_ptr(), value.data_ptr())
        self._call("lacuna_project", x.data_ptr(), rows, norm.data_ptr(), eps, byref(qkv.struct), *angles, *shape)
        return turned[:heads], turned[heads:], value

    def finish(
        self,
        x: Tensor,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: FoldedMask | None,
        output: PackedLinear,
        norm: Tensor,
        eps: float,
        gate_up: PackedLinear,
        down: PackedLinear,
    ) -> Tensor:
        """A layer's second half [R, W]: attention, its linear, and the gated MLP, each added to what it came from.

        ``x`` [R, W] came into the layer. ``keys`` [G, K, D] are laid out by column (``empty_keys``), ``values``
        [G, K, D] by row.
        """
        heads, rows, width = query.shape
        groups, count, _ = keys.shape
        strides = (keys.stride(0), keys.stride(2), values.stride(0), values.stride(1))
        cache = _Cache(keys.data_ptr(), values.data_ptr(), *strides, count)
        added = _Mask(None, 0) if mask is None else _Mask(mask.added.data_ptr(), mask.start)
        x, query = x.contiguous(), query.contiguous()
        y = torch.empty_like(x)
        shape = (heads, groups, width, byref(cache), byref(added))
        linears = (byref(output.struct), norm.data_ptr(), eps, byref(gate_up.struct), byref(down.struct))
        self._call("lacuna_finish", x.data_ptr(), rows, query.data_ptr(), *shape, *linears, y.data_ptr())
        return y

    def _call(self, name: str, *arguments: object) -> None:
        """Run a function of the library. Raises MemoryError where it found no room."""
        function = getattr(self._library, name)
        if self.crew.run(lambda threads: int(function(*arguments, threads))):
            raise MemoryError(name)


def supported() -> list[InstructionSet]:
    """The sets that the CPU has, best first."""
    capabilities = torch.cpu.get_capabilities()
    return [found for found in INSTRUCTION_SETS if all(capabilities.get(name, False) for name in found.needs)]


def load(folder: Path, threads: int) -> NativeKernels | None:
    """The library, built into ``folder`` where it is not there yet; None where it cannot be had."""
    with contextlib.suppress(OSError):
        return build(folder, threads)
    return None


def build(folder: Path, threads: int = 1, instructions: Sequence[InstructionSet] | None = None) -> NativeKernels:
    """As :func:`load`, of the first of ``instructions`` that the compiler knows. Raises OSError."""
    failure = OSError("the CPU has no instructions that the library has a form for")
    for candidate in supported() if instructions is None else instructions:
        try:
            return _build(folder, threads, candidate)
        except OSError as error:
            failure = error
    raise failure


def _build(folder: Path, threads: int, instructions: InstructionSet) -> NativeKernels:
    flags = (*FLAGS, *instructions.flags)
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in SOURCES) + " ".join(flags).encode()).hexdigest()[:16]
    target = folder / f"layer-{digest}.so"
    if target.exists():
        with contextlib.suppress(OSError):  # what is damaged is built anew
            return NativeKernels(target, instructions, threads)
    _compile(target, flags)
    return NativeKernels(target, instructions, threads)


def _compile(target: Path, flags: Sequence[str]) -> None:
    """Build ``target``; it appears whole or not at all. Raises OSError."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}.part")
    try:
        units = [str(file) for file in SOURCES if file.suffix == ".c"]
        done = subprocess.run([compiler, *flags, *units, "-o", str(part)], capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"{compiler} failed: {' '.join(done.stderr.splitlines()[:1])}")
        with part.open("rb+") as written:
            os.fsync(written.fileno())  # a library that a power cut left half written would end the process
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
