"""The memory of weights and of free blocks: weights in huge pages; glibc's free memory kept or returned."""

import contextlib
import ctypes
import gc
import mmap
import sys
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

HUGE_PAGE = 2 << 20  # bytes
CACHE_LINE = 64  # bytes
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


def room(sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """Bytes [N] for every part of ``sizes``, one behind the other; in huge pages if the system has them.

    A pass reads every weight once, and from huge pages two cores read about a third more a second than from small ones.
    """
    lines = {name: -(-size // CACHE_LINE) * CACHE_LINE for name, size in sizes.items()}
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if sys.platform == "linux" else {}
    area = mmap.mmap(-1, sum(lines.values()) + HUGE_PAGE, **private)  # shared memory has huge pages only if allowed
    with contextlib.suppress(AttributeError, OSError):  # a system without them
        area.madvise(mmap.MADV_HUGEPAGE)
    whole = torch.frombuffer(area, dtype=torch.uint8)
    at, parts = -whole.data_ptr() % HUGE_PAGE, dict[str, Tensor]()
    for name, size in sizes.items():
        parts[name] = whole[at : at + size]
        at += lines[name]
    return parts


def fill(part: Tensor, path: Path, start: int) -> None:
    """Fill the bytes [N] of a part from a file, from byte ``start`` on. Raises OSError, also if the file is shorter."""
    left = part.numpy().data
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while left:
            count = file.readinto(left)
            if not count:
                raise OSError(f"{path} is shorter than it says")
            left = left[count:]
