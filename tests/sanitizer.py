"""Runs programs of the tests under gcc's AddressSanitizer, which ends them where C leaves the memory that it has."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests import compiled_once

from lacuna_model.hub import models

ROOT = Path(__file__).parents[1]
# The exit code of a process that the sanitizer has ended.
FOUND = 99
# Each of the two fuzzers runs so long.
SECONDS = "10" if os.environ.get("CI") else "4"


def library() -> str:
    """The sanitizer's library; without gcc or without the library, the test is skipped."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("there is no gcc")
    found = subprocess.run([gcc, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    if not Path(found.strip()).is_absolute():
        pytest.skip("gcc has no AddressSanitizer")
    return found.strip()


def sanitized(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Python with these arguments; kernels are compiled for the sanitizer, into ``folder``."""
    options = "-Og -fsanitize=address"  # optimised, it compiles for minutes
    programs = compiled_once.install(models.cache_dir() / "compiled", "gcc", options=options)
    assert programs is not None
    environment = os.environ | {
        "CC": str(programs / "cc"),
        "LD_PRELOAD": library(),
        # What Python does not free before it ends is no leak.
        "ASAN_OPTIONS": f"detect_leaks=0:exitcode={FOUND}",
        "LACUNA_CACHE": str(folder / "cache"),
        "PYTHONPATH": str(ROOT),
        "PYTHONMALLOC": "malloc",
    }
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False, timeout=600
    )


def fuzzed(folder: Path, program: str) -> set[str]:
    """Run a fuzzer for :data:`SECONDS` and return what became of its cases; fails where the sanitizer found a fault."""
    ended = sanitized(folder, "-m", program, SECONDS)
    assert ended.returncode == 0, ended.stderr[-4000:]
    counts: dict[str, int] = ast.literal_eval(ended.stdout.splitlines()[-1])
    print(program, counts)
    return set(counts)
