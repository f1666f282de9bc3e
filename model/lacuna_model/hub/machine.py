"""The machine: its memory, which glibc keeps or returns, that of the GPU, as its driver says, and its processors.

Loads no torch, which takes seconds: a worker and the choice of a model need it before.
"""

import ctypes
import errno
import gc
import math
import os
import sys
from pathlib import Path

# Torch has a type for the memory of a GPU alone.
TORCH_TYPES, TORCH_WORDS = frozenset({"OutOfMemoryError"}), ("can't allocate memory", "out of memory")
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h


def ran_out(error: BaseException) -> bool:
    """Return whether an error, or what caused it, says that an allocation failed: in Python, a kernel or torch."""
    cause = error.__cause__ or error.__context__
    return _says_so(error) or (cause is not None and ran_out(cause))


def _says_so(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or type(error).__name__ in TORCH_TYPES:
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(words in str(error) for words in TORCH_WORDS)


def reuse_freed() -> None:
    """Keep freed memory: mapping and clearing a vocabulary's rows again and again takes 6 % of a fill's time."""
    _glibc("mallopt", M_TRIM_THRESHOLD, 256 << 20)
    _glibc("mallopt", M_MMAP_THRESHOLD, 32 << 20)


def give_back_freed() -> None:
    """Collect garbage, and return free memory to the system, also from the middle of the heap."""
    gc.collect()
    _glibc("malloc_trim", 0)


def _glibc(function: str, *arguments: int) -> None:
    """Call a function that glibc alone has."""
    found = getattr(ctypes.CDLL(None), function, None) if sys.platform == "linux" else None
    if found is not None:
        found(*arguments)


LIBRARY = "libnvidia-ml.so.1"


def free_on_gpu() -> int:
    """Bytes of free memory of the first NVIDIA GPU that this process sees; 0 where torch can use none."""
    index = _first_visible()
    if index is None:
        return 0
    try:
        driver = ctypes.CDLL(LIBRARY)
        if not _torch_uses_gpus():
            return 0
        handle, memory = ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()  # nvmlMemory_t: total, free, used
        if driver.nvmlInit_v2():
            return 0
        try:
            found = driver.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
            if found or driver.nvmlDeviceGetMemoryInfo(handle, memory):
                return 0
        finally:
            driver.nvmlShutdown()
    except (OSError, AttributeError):  # no driver, or one without these functions
        return 0
    return memory[1]


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


PROCESSORS = Path("/proc/cpuinfo")
OWN_GROUP, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def _control_groups() -> list[Path]:
    """The folders of this process's control group (version 2) and of those around it; none where there is none."""
    try:
        lines = OWN_GROUP.read_text("utf-8").splitlines()
    except OSError:
        return []
    own = [GROUPS / line.removeprefix("0::").lstrip("/") for line in lines if line.startswith("0::")]
    return [group for one in own for group in (one, *one.parents) if group == GROUPS or GROUPS in group.parents]


def _memory_left(group: Path) -> float:
    """The bytes that a control group may still take; infinite without a limit."""
    try:
        most, used = (int((group / name).read_text("ascii")) for name in ("memory.max", "memory.current"))
        counts = dict(line.split() for line in (group / "memory.stat").read_text("ascii").splitlines())
        return max(most - used + int(counts.get("inactive_file", 0)), 0)
    except (OSError, ValueError):  # "max" is no number
        return math.inf


def _core_quota(group: Path) -> float:
    """The cores that a control group may use; infinite without a limit."""
    try:
        quota, period = (group / "cpu.max").read_text("ascii").split()
        return int(quota) / int(period)
    except (OSError, ValueError):
        return math.inf


def free_memory() -> int:
    """Bytes of free memory, in a container what it may take; else of all memory, or 0 where the system tells none."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(min([int(line.split()[1]) << 10, *map(_memory_left, _control_groups())]))
    except (OSError, ValueError):
        pass
    pages = os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else -1
    return pages * os.sysconf("SC_PAGE_SIZE") if pages > 0 else 0


def num_processors() -> int:
    """The processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def num_cores() -> int:
    """The processors that this process may keep busy: a container may have a quota of their time."""
    return max(math.ceil(min([num_processors(), *map(_core_quota, _control_groups())])), 1)


def has_fast_products() -> bool:
    """Whether the processor multiplies in 8 bit, without which weights are in float32; True where no one tells."""
    try:
        words = set(PROCESSORS.read_text("utf-8", errors="replace").split())
    except OSError:
        return True
    return not words.isdisjoint(("avx2", "asimddp"))
