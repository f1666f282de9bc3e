"""What the driver says of a GPU's memory, with a fake driver."""

import ctypes
import importlib.metadata
from typing import Any

import pytest

from lacuna_model.hub import gpus


class Driver:
    """Two GPUs with 10 and 20 GB of free memory; ``failing`` names the function that reports an error."""

    def __init__(self, failing: str = "") -> None:
        self._failing = failing
        self.open = 0

    def nvmlInit_v2(self) -> int:
        self.open += self._failing != "init"
        return int(self._failing == "init")

    def nvmlShutdown(self) -> int:
        self.open -= 1
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:
        ctypes.cast(handle, ctypes.POINTER(ctypes.c_void_p))[0] = index + 1
        return int(index > 1)

    def nvmlDeviceGetMemoryInfo(self, handle: ctypes.c_void_p, memory: Any) -> int:
        assert handle.value is not None
        ctypes.cast(memory, ctypes.POINTER(ctypes.c_ulonglong))[1] = handle.value * 10 * 10**9
        return int(self._failing == "memory")


def found(monkeypatch: pytest.MonkeyPatch, driver: Driver, visible: str | None = None, torch: str = "2.13.0") -> int:
    monkeypatch.setattr(gpus.ctypes, "CDLL", lambda name: driver)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: torch)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    free = gpus.free_memory()
    assert driver.open == 0
    return free


@pytest.mark.parametrize(
    ("visible", "free"),
    [(None, 10), ("0", 10), ("1,0", 20), ("", 0), ("-1", 0), ("7", 0), ("GPU-8932f937-d72c", 10)],
)
def test_it_is_that_of_the_first_visible_gpu(monkeypatch: pytest.MonkeyPatch, visible: str | None, free: int) -> None:
    assert found(monkeypatch, Driver(), visible) == free * 10**9


@pytest.mark.parametrize("failing", ["init", "memory"])
def test_a_driver_that_fails_has_none(monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    assert found(monkeypatch, Driver(failing)) == 0


def test_a_torch_for_cpus_uses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, Driver(), torch="2.13.0+cpu") == 0


def test_a_machine_without_a_driver_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.13.0")
    monkeypatch.setattr(gpus.ctypes, "CDLL", missing)
    assert gpus.free_memory() == 0
