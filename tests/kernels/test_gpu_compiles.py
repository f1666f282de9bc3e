"""Triton compiles every kernel to machine code. Compiling needs no GPU; running the code would.

Triton keeps what it has compiled by the kernel's text, for this and later runs.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lacuna_kernels

pytest.importorskip("triton")

SCRIPT = Path(__file__).with_name("compile_for_gpus.py")
SOURCE = Path(lacuna_kernels.__file__).parents[1]


def test_every_kernel_compiles_for_two_generations_of_gpus(cache_folder: Path) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    paths = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = inherited | {"PYTHONPATH": paths, "TRITON_CACHE_DIR": str(cache_folder / "triton")}
    done = subprocess.run([sys.executable, SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {(line[0], line[1]) for line in lines} == {
        (capability, f"{name}_kernel")
        for capability in ("80", "90")
        for name in ("rms_norm", "blocks", "rows", "product", "addition", "heads", "attend", "merge", "gate")
    }
    assert all(int(size) > 0 for *_, size in lines)
