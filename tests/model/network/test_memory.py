"""Freed memory goes back to the operating system; memory in use stays."""

import errno
import sys
import weakref
from pathlib import Path

import pytest
import torch

from lacuna_model.network import memory


class Node:
    """An object that refers to itself, so that only the garbage collector frees it."""

    def __init__(self) -> None:
        self.itself = self


def test_an_object_with_no_reference_but_its_own_is_freed() -> None:
    gone, kept = weakref.ref(Node()), Node()
    memory.give_back_freed()
    assert gone() is None
    assert kept.itself is kept


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and glibc")
def test_free_memory_between_blocks_in_use_goes_back_to_the_system() -> None:
    def resident() -> int:
        fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
        return int(fields["RssAnon"].split()[0])

    blocks = [bytes(100_000) for _ in range(2000)]  # too small for glibc to map each
    blocks = [bytes(block) if place % 50 else block for place, block in enumerate(blocks)]
    before = resident()
    del blocks[1::2], blocks[1::2]
    memory.give_back_freed()
    assert resident() < before - 50_000


def test_an_allocation_that_failed_is_told_from_other_errors() -> None:
    for allocate in (lambda: bytearray(1 << 60), lambda: torch.empty(1 << 60)):
        with pytest.raises((MemoryError, RuntimeError)) as failed:
            allocate()
        assert memory.ran_out(failed.value)
    assert memory.ran_out(torch.OutOfMemoryError("CUDA out of memory"))
    assert memory.ran_out(OSError(errno.ENOMEM, "Cannot allocate memory"))
    damaged = ValueError("a damaged file")
    damaged.__cause__ = OSError(errno.ENOMEM, "Cannot allocate memory")
    assert memory.ran_out(damaged)
    assert not memory.ran_out(OSError(errno.ENOENT, "No such file"))
    assert not memory.ran_out(RuntimeError("shapes do not match"))
    assert not memory.ran_out(ValueError("can't allocate memory"))
