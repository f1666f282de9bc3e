"""The memory of weights and of free blocks: weights where files are cached; glibc's free memory kept or returned."""

import contextlib
import ctypes
import gc
import mmap
import sys
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

MADV_POPULATE_READ = 22  # linux/mman.h, since 5.14
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h


def reuse_freed() -> None:
    """Keep freed memory: mapping and clearing a vocabulary's rows again and again takes 6 % of a fill's time."""
    _set({M_TRIM_THRESHOLD: 256 << 20, M_MMAP_THRESHOLD: 32 << 20})


def _set(parameters: Mapping[int, int]) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for parameter, value in parameters.items():
            mallopt(parameter, value)


def give_back_freed() -> None:
    """Collect garbage, and return free memory to the system, also from the middle of the heap."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def mapped(path: Path) -> Tensor:
    """The bytes [N] of a file where the system's cache of files holds them: nothing is copied. Raises OSError.

    Writing to them does not change the file.
    """
    with path.open("rb") as file:
        area = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    with contextlib.suppress(AttributeError, OSError):  # a system that cannot; there every page is a fault of its own
        area.madvise(MADV_POPULATE_READ)
    return torch.frombuffer(area, dtype=torch.uint8)
