"""The memory of the GPU that a model would run on, asked of its driver: importing torch for that takes seconds."""

import ctypes
import os

LIBRARY = "libnvidia-ml.so.1"


class _Memory(ctypes.Structure):
    """``nvmlMemory_t`` of nvml.h, in bytes."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def free_memory() -> int:
    """Bytes of free memory of the first NVIDIA GPU that this process sees; 0 where torch can use none."""
    index = _first_visible()
    if index is None:
        return 0
    try:
        driver = ctypes.CDLL(LIBRARY)
        if not _torch_uses_gpus():
            return 0
        handle, memory = ctypes.c_void_p(), _Memory()
        if driver.nvmlInit_v2():
            return 0
        try:
            found = driver.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
            if found or driver.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)):
                return 0
        finally:
            driver.nvmlShutdown()
    except (OSError, AttributeError):  # no driver, or one without these functions
        return 0
    return int(memory.free)


def _first_visible() -> int | None:
    """The number of the first GPU in CUDA_VISIBLE_DEVICES, 0 where that is unset or names GPUs otherwise; else None."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return 0
    first = listed.split(",")[0].strip()
    if first in ("", "-1"):
        return None
    return int(first) if first.isdecimal() else 0


def _torch_uses_gpus() -> bool:
    """Whether the torch that is installed may have been built for GPUs."""
    import importlib.metadata  # without a driver it is not needed

    try:
        return not importlib.metadata.version("torch").endswith("+cpu")
    except importlib.metadata.PackageNotFoundError:
        return False
