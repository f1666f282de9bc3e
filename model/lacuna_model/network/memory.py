"""Memory of the process: free memory of glibc, kept or returned, and errors where there is none.

Loads no torch: a worker uses it before its engine does.
"""

import ctypes
import errno
import gc
import sys
from collections.abc import Mapping

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
