"""What glibc does with free memory: kept for the next fill or step while there is work, and given back when not."""

import ctypes
import gc
import sys
from collections.abc import Mapping

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -2, -3, -4  # malloc.h


def reuse_freed() -> None:
    """Have it kept: the rows of a vocabulary, mapped and cleared anew, are 6 % of a fill's time."""
    _set({M_TRIM_THRESHOLD: 256 << 20, M_MMAP_THRESHOLD: 32 << 20})


def reuse_all_freed() -> None:
    """Have all of it kept, whatever its size: a step of training needs as much as the one before (17 % of its time)."""
    _set({M_MMAP_MAX: 0, M_TRIM_THRESHOLD: -1, M_TOP_PAD: 100 << 20})  # -1: never given back


def _set(parameters: Mapping[int, int]) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for parameter, value in parameters.items():
            mallopt(parameter, value)


def give_back_freed() -> None:
    """Free what nothing refers to any more, and give what is free back to the system, also between what is not."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
