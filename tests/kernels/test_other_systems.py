"""The C kernels as zig compiles them for wheels, on this system and on emulated ones."""

import platform
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from lacuna_kernels import compiling, native
from lacuna_kernels.compiling import FLAGS, SOURCES
from lacuna_kernels.native import NativeKernels, PackedLinear
from lacuna_kernels.quantised import quantized

ROOT = Path(__file__).parents[2]
ARM_EMULATOR = shutil.which("qemu-aarch64")
PROGRAM_FLAGS = [flag for flag in FLAGS if flag not in ("-shared", "-fPIC")]

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or compiling.AVX2 not in native.supported(), reason="no CPU with AVX2"
)


@pytest.fixture(scope="module")
def hook() -> dict[str, Any]:
    """What ``kernels/hatch_build.py`` defines."""
    return runpy.run_path(str(ROOT / "kernels/hatch_build.py"))


def outputs(compiler: Sequence[str], flags: Sequence[str], program: Path, runner: Sequence[str] = ()) -> list[str]:
    """The numbers that ``layer_outputs.c`` prints."""
    source = Path(__file__).with_name("layer_outputs.c")
    command = [*compiler, f"-I{SOURCES[0].parent}", str(source), *PROGRAM_FLAGS, *flags, "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    return subprocess.run([*runner, str(program)], check=True, capture_output=True, text=True).stdout.split()


def zig(target: str) -> list[str]:
    return [sys.executable, "-m", "ziglang", "cc", "-target", target]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the system's compiler makes of the program."""
    return outputs(["cc"], [*compiling.AVX2.flags, "-lm"], tmp_path_factory.mktemp("own") / "own")


@pytest.mark.skipif(ARM_EMULATOR is None, reason="no emulator of ARM")
def test_an_emulated_arm_computes_the_same_layers(hook: dict[str, Any], expected: list[str], tmp_path: Path) -> None:
    flags = ["-static", *hook["ZIG_FLAGS"]["NEON"]]
    printed = outputs(zig("aarch64-linux-musl"), flags, tmp_path / "arm", [str(ARM_EMULATOR)])
    got, own = (torch.tensor([float(number) for number in numbers]).view(-1, 256) for numbers in (printed, expected))
    errors = (got - own).norm(dim=1) / own.norm(dim=1)
    assert errors.median() < 1e-5  # sums in another order
    assert errors.max() < 0.02  # a row in which one of them is rounded to another code


@pytest.fixture(scope="module", params=native.supported(), ids=lambda instructions: instructions.name)
def both(
    request: pytest.FixtureRequest, hook: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> tuple[NativeKernels, NativeKernels]:
    """The kernels as a wheel has them, found without a compiler, and as the system's compiler builds them."""
    instructions, folder = request.param, tmp_path_factory.mktemp("both")
    compiled = native.build(folder / "compiled", instructions=[instructions])
    target, sets = hook["PLATFORMS"]["manylinux_2_28_x86_64"]
    assert [found.name for found in sets] == [found.name for found in compiling.X86]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "BUILT", folder / "built")
        instructions.built.parent.mkdir()
        hook["compile_for"](target, instructions, instructions.built)
        patch.setenv("PATH", "")
        built = native.build(folder / "empty", instructions=[instructions])
        assert built.path == instructions.built
    return built, compiled


def eight_bit(kernels: NativeKernels, out: int, width: int) -> PackedLinear:
    make = torch.Generator().manual_seed(0)
    codes = torch.randint(-127, 128, (out, width), generator=make, dtype=torch.int8)
    return kernels.bind(kernels.packed(codes), torch.rand(out, generator=make), torch.randn(out, generator=make))


def four_bit(kernels: NativeKernels, out: int, width: int) -> PackedLinear:
    weight = quantized(torch.randn((out, width), generator=torch.Generator().manual_seed(1)))
    return kernels.bind(torch.empty((0, width), dtype=torch.uint8), torch.empty(0), None, kernels.packed_blocks(weight))


@pytest.mark.parametrize("make", [eight_bit, four_bit])
def test_a_built_library_gives_the_bits_of_a_compiled_one(
    both: tuple[NativeKernels, NativeKernels], make: Callable[[NativeKernels, int, int], PackedLinear]
) -> None:
    built, compiled = [(kernels, make(kernels, 64, 320)) for kernels in both]
    for count in range(1, 18):
        x = torch.randn((count, 320), generator=torch.Generator().manual_seed(count))
        assert torch.equal(*(kernels.linear(x, linear) for kernels, linear in (built, compiled)))
    assert torch.equal(*(kernels.lookup(torch.arange(64), linear) for kernels, linear in (built, compiled)))
