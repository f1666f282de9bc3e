"""Freed memory goes back to the operating system, memory in use stays; containers have limits."""

import ctypes
import errno
import importlib.metadata
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from lacuna_model.hub import machine


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and glibc")
def test_free_memory_between_blocks_in_use_goes_back_to_the_system() -> None:
    def resident() -> int:
        fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
        return int(fields["RssAnon"].split()[0])

    blocks = [bytes(100_000) for _ in range(2000)]  # too small for glibc to map each
    blocks = [bytes(block) if place % 50 else block for place, block in enumerate(blocks)]
    before = resident()
    del blocks[1::2], blocks[1::2]
    machine.give_back_freed()
    assert resident() < before - 50_000


def test_an_allocation_that_failed_is_told_from_other_errors() -> None:
    for allocate in (lambda: bytearray(1 << 60), lambda: torch.empty(1 << 60)):
        with pytest.raises((MemoryError, RuntimeError)) as failed:
            allocate()
        assert machine.ran_out(failed.value)
    assert machine.ran_out(torch.OutOfMemoryError("CUDA out of memory"))
    assert machine.ran_out(OSError(errno.ENOMEM, "Cannot allocate memory"))
    damaged = ValueError("a damaged file")
    damaged.__cause__ = OSError(errno.ENOMEM, "Cannot allocate memory")
    assert machine.ran_out(damaged)
    assert not machine.ran_out(OSError(errno.ENOENT, "No such file"))
    assert not machine.ran_out(RuntimeError("shapes do not match"))
    assert not machine.ran_out(ValueError("can't allocate memory"))


class Driver:
    """Two GPUs with 10 and 20 GB of free memory; ``failing`` names the function that reports an error."""

    def __init__(self, failing: str = "") -> None:
        self.nvmlInit_v2 = lambda: int(failing == "init")
        self.nvmlShutdown = lambda: 0
        self._failing = failing

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:
        ctypes.cast(handle, ctypes.POINTER(ctypes.c_void_p))[0] = index + 1
        return int(index > 1)

    def nvmlDeviceGetMemoryInfo(self, handle: ctypes.c_void_p, memory: Any) -> int:
        assert handle.value is not None
        ctypes.cast(memory, ctypes.POINTER(ctypes.c_ulonglong))[1] = handle.value * 10 * 10**9
        return int(self._failing == "memory")


@pytest.mark.parametrize(
    ("driver", "visible", "torch", "free"),
    [
        *((Driver(), visible, "2.13.0", 10) for visible in (None, "0", "GPU-8932f937-d72c")),
        (Driver(), "1,0", "2.13.0", 20),
        *((Driver(), visible, "2.13.0", 0) for visible in ("", "-1", "7")),
        *((broken, None, "2.13.0", 0) for broken in (Driver("init"), Driver("memory"), None)),
        (Driver(), None, "2.13.0+cpu", 0),
    ],
)
def test_the_free_memory_is_that_of_the_first_visible_gpu_that_torch_can_use(
    monkeypatch: pytest.MonkeyPatch, driver: Driver | None, visible: str | None, torch: str, free: int
) -> None:
    def loaded(name: str) -> Driver:
        if driver is None:
            raise OSError(f"{name}: cannot open shared object file")
        return driver

    monkeypatch.setattr(machine.ctypes, "CDLL", loaded)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: torch)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert machine.free_on_gpu() == free * 10**9


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a process's control group inside another one."""
    (tmp_path / "cgroup").write_text("0::/outer/inner\n")
    monkeypatch.setattr(machine, "OWN_GROUP", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "GROUPS", tmp_path / "fs")
    inner = tmp_path / "fs/outer/inner"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "memory.max").write_text("max\n")
        (folder / "cpu.max").write_text("max 100000\n")
    return inner


def test_a_container_limits_memory_and_cores(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "num_processors", lambda: 8)
    assert machine.num_cores() == 8
    free = machine.free_memory()
    (groups / "memory.max").write_text(f"{100 << 20}\n")
    (groups / "memory.current").write_text(f"{60 << 20}\n")
    (groups / "memory.stat").write_text(f"anon 1\ninactive_file {20 << 20}\n")
    (groups.parent / "cpu.max").write_text("150000 100000\n")
    assert machine.num_cores() == 2
    assert machine.free_memory() == min(free, 60 << 20)
    (groups.parent / "cpu.max").write_text("50000 100000\n")
    assert machine.num_cores() == 1
