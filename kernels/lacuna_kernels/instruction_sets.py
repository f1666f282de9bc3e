"""The vector instructions that the C kernels have a form for, and how a compiler builds the library for each.

This module imports nothing of the package: ``kernels/hatch_build.py`` reads it where torch is not installed.
"""

from dataclasses import dataclass
from pathlib import Path

SOURCES = sorted(Path(__file__).with_name("csrc").glob("*.[ch]"))
# Where a platform's wheel has the libraries; elsewhere there is no such folder.
BUILT = Path(__file__).with_name("built")
# Compilers differ in which products and sums they fuse. The code itself says where it wants that, so that all of them
# give the same bits.
FLAGS = ("-O3", "-ffp-contract=off", "-pthread", "-shared", "-fPIC", "-fvisibility=hidden")


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """Vector instructions that ``csrc/simd.h`` supports: capabilities by torch's names, and the compiler's flags."""

    name: str
    needs: tuple[str, ...]
    flags: tuple[str, ...]

    @property
    def built(self) -> Path:
        """The library for these instructions that a platform's wheel has."""
        return BUILT / f"{self.name.lower().replace(' ', '-')}.so"


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
X86 = (AVX512_BF16, AVX512, AVX_VNNI, AVX2)
ARM = (NEON,)
INSTRUCTION_SETS = (*X86, *ARM)
