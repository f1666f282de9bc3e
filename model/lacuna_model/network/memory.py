"""The memory of weights and of free blocks: weights where files are cached; glibc's free memory kept or returned."""

import contextlib
import ctypes
import gc
import mmap
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

HUGE_PAGE = 2 << 20  # bytes
MREMAP_MAYMOVE, MREMAP_FIXED = 1, 2  # linux/mman.h
MADV_POPULATE_READ = 22  # linux/mman.h, since 5.14
# Mapped weights stay where they are until a first request has been answered; then every page is a short pause.
SETTLED_S, REST_S = 20.0, 0.02
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

    Writing to them does not change the file. Soon they move into huge pages, as :func:`settle` says.
    """
    with path.open("rb") as file:
        area = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    with contextlib.suppress(AttributeError, OSError):  # a system that cannot; else every page is a fault of its own
        area.madvise(MADV_POPULATE_READ)
    timer = threading.Timer(SETTLED_S, settle, [weakref.ref(area)])
    timer.daemon = True
    timer.start()
    return torch.frombuffer(area, dtype=torch.uint8)


def settle(area: "weakref.ref[mmap.mmap]", rest_s: float = REST_S) -> None:
    """Move mapped bytes into huge pages, one after the other, where the system can: they stay at their addresses.

    A pass reads every weight once, and from huge pages two cores read up to a third more a second than from small ones.
    Whoever reads a page while it moves waits for that: the system replaces it in one step (mremap(2), MREMAP_FIXED).
    """
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if libc is None:
        return
    libc.mremap.restype = ctypes.c_void_p
    place = 0
    while (held := area()) is not None:
        begin = ctypes.addressof(ctypes.c_char.from_buffer(held))
        page = begin + -begin % HUGE_PAGE + place
        if page + HUGE_PAGE > begin + len(held):
            return
        spare = mmap.mmap(-1, 2 * HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        spare.madvise(mmap.MADV_HUGEPAGE)
        copy = ctypes.addressof(ctypes.c_char.from_buffer(spare))
        copy += -copy % HUGE_PAGE
        ctypes.memmove(copy, page, HUGE_PAGE)
        moved = libc.mremap(*map(ctypes.c_void_p, (copy, HUGE_PAGE, HUGE_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page)))
        if moved != page:
            return
        place += HUGE_PAGE
        del held
        time.sleep(rest_s)
