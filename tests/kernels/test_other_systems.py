"""The C kernels as zig compiles them for wheels, on this system and on emulated ones."""

import os
import platform
import runpy
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from lacuna_kernels import instruction_sets, native
from lacuna_kernels.instruction_sets import FLAGS, SOURCES, InstructionSet
from lacuna_kernels.native import NativeKernels

ROOT = Path(__file__).parents[2]
ARM_EMULATOR, WINE = shutil.which("qemu-aarch64"), shutil.which("wine64") or shutil.which("wine")
PROGRAM_FLAGS = [flag for flag in FLAGS if flag not in ("-shared", "-fPIC")]

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or instruction_sets.AVX2 not in native.supported(), reason="no CPU with AVX2"
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
    environment = os.environ | {"WINEDEBUG": "-all", "WINEPREFIX": str(program.with_name("wine"))}
    printed = program.with_suffix(".txt")
    with printed.open("wb") as file:  # Wine's own processes keep a pipe open for minutes
        subprocess.run([*runner, str(program)], check=True, stdout=file, stderr=subprocess.DEVNULL, env=environment)
    return printed.read_text().split()


def zig(target: str) -> list[str]:
    return [sys.executable, "-m", "ziglang", "cc", "-target", target]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the system's compiler makes of the program."""
    return outputs(["cc"], [*instruction_sets.AVX2.flags, "-lm"], tmp_path_factory.mktemp("own") / "own")


@pytest.mark.skipif(ARM_EMULATOR is None, reason="no emulator of ARM")
def test_an_emulated_arm_cpu_computes_the_same_layers(
    hook: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    flags = ["-static", *hook["ZIG_FLAGS"]["NEON"]]
    printed = outputs(zig("aarch64-linux-musl"), flags, tmp_path / "arm", [str(ARM_EMULATOR)])
    got, own = (torch.tensor([float(number) for number in numbers]).view(-1, 256) for numbers in (printed, expected))
    errors = (got - own).norm(dim=1) / own.norm(dim=1)
    assert errors.median() < 1e-5  # sums in another order
    assert errors.max() < 0.02  # a row in which one of them is rounded to another code


@pytest.mark.skipif(WINE is None, reason="no wine")
def test_windows_gives_the_same_bits(expected: list[str], tmp_path: Path) -> None:
    compiler, flags = zig("x86_64-windows-gnu"), instruction_sets.AVX2.flags
    assert outputs(compiler, flags, tmp_path / "own.exe", [str(WINE)]) == expected


def results(kernels: NativeKernels) -> list[torch.Tensor]:
    """Linears of one to nine rows, and rows of a weight."""
    make = torch.Generator().manual_seed(0)
    codes = torch.randint(-127, 128, (64, 96), generator=make, dtype=torch.int8)
    scale, bias = torch.rand(64, generator=make), torch.randn(64, generator=make)
    linear = kernels.pack(codes, scale, bias)
    rows = [torch.randn((count, 96), generator=make) for count in range(1, 10)]
    return [*(kernels.linear(x, linear) for x in rows), kernels.lookup(torch.arange(64), linear)]


@pytest.mark.parametrize("instructions", native.supported(), ids=lambda instructions: instructions.name)
def test_a_built_library_is_used_without_a_compiler_and_gives_the_bits_of_a_compiled_one(
    instructions: InstructionSet, hook: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = native.build(tmp_path / "compiled", instructions=[instructions])
    monkeypatch.setattr(instruction_sets, "BUILT", tmp_path / "built")
    instructions.built.parent.mkdir()
    target, sets = hook["PLATFORMS"]["manylinux_2_28_x86_64"]
    assert [found.name for found in sets] == [found.name for found in instruction_sets.X86]
    hook["compile_for"](target, instructions, instructions.built)
    monkeypatch.setenv("PATH", "")
    built = native.load(tmp_path / "empty", 2)
    assert built is not None
    assert built.path == instructions.built
    for got, own in zip(results(built), results(compiled), strict=True):
        assert torch.equal(got, own)


def test_a_built_library_of_another_system_is_left_for_a_compiled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instruction_sets, "BUILT", tmp_path / "built")
    (tmp_path / "built").mkdir()
    for found in native.supported():
        found.built.write_bytes(b"MZ")
    assert native.build(tmp_path / "compiled").path.parent == tmp_path / "compiled"


@pytest.mark.parametrize("name", ["macosx_11_0_arm64", "macosx_11_0_x86_64", "manylinux_2_28_aarch64"])
def test_the_kernels_compile_for_a_platform(name: str, hook: dict[str, Any], tmp_path: Path) -> None:
    target, sets = hook["PLATFORMS"][name]
    hook["compile_for"](target, sets[-1], tmp_path / "library")
    library = (tmp_path / "library").read_bytes()
    assert library.startswith({"mac": b"\xcf\xfa\xed\xfe", "man": b"\x7fELF", "win": b"MZ"}[name[:3]])
    for function in (b"lacuna_pack_blocks\0", b"lacuna_lookup\0", b"lacuna_linear\0", b"lacuna_layers\0"):
        assert function in library
