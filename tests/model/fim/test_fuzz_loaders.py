"""The loaders under AddressSanitizer, with files that contradict themselves."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lacuna_kernels import native

ROOT = Path(__file__).parents[3]
SECONDS = "30" if os.environ.get("CI") else "8"

pytestmark = pytest.mark.skipif(not native.supported(), reason="this CPU has none of the instructions")


def sanitizer() -> str:
    """The library of gcc's AddressSanitizer."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("there is no gcc")
    found = subprocess.run([gcc, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    if not Path(found.strip()).is_absolute():
        pytest.skip("gcc has no AddressSanitizer")
    return found.strip()


def environment(folder: Path) -> dict[str, str]:
    """The environment of a process whose kernels are compiled for AddressSanitizer."""
    compiler = folder / "cc"
    compiler.write_text('#!/bin/sh\nexec gcc -fsanitize=address -g "$@"\n')
    compiler.chmod(0o755)
    return dict(os.environ) | {
        "CC": str(compiler),
        "LD_PRELOAD": sanitizer(),
        # Python frees little before it ends. The interpreter's own memory is of no interest.
        "ASAN_OPTIONS": "detect_leaks=0:exitcode=99",
        "LACUNA_CACHE": str(folder / "cache"),
        "PYTHONPATH": str(ROOT),
        "PYTHONMALLOC": "malloc",
    }


def test_the_sanitizer_notices_a_read_outside_of_a_tensor(tmp_path: Path) -> None:
    code = (
        "import ctypes, pathlib, sys, torch\n"
        "from lacuna_kernels import native\n"
        "kernels = native.build(pathlib.Path(sys.argv[1]))\n"
        "codes, packed = torch.ones((32, 32), dtype=torch.int8), torch.empty((32, 32), dtype=torch.uint8)\n"
        "kernels._library.lacuna_pack(codes.data_ptr(), 64, 64, packed.data_ptr())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "cache")],
        env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 99, ended.stderr[-2000:]
    assert "heap-buffer-overflow" in ended.stderr


def test_files_that_contradict_themselves_are_refused_or_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.model.fim.fuzz_loaders", SECONDS]
    ended = subprocess.run(
        command, env=environment(tmp_path), cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    counts = ast.literal_eval(ended.stdout.splitlines()[-1])
    assert counts.keys() == {"refused", "ran", "not written"}
