"""Freed memory goes back to the operating system; memory in use stays."""

import mmap
import random
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
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


def test_a_files_bytes_are_where_it_is_cached_and_writing_to_them_does_not_change_it(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"weights of a model")
    found = memory.mapped(path)
    assert found.numpy().tobytes() == b"weights of a model"
    found[0] = 0
    assert path.read_bytes() == b"weights of a model"


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages on request are Linux's")
def test_weights_move_into_huge_pages_while_they_are_read(tmp_path: Path) -> None:
    path, size = tmp_path / "weights", 5 * memory.HUGE_PAGE + 1000
    path.write_bytes(random.Random(1).randbytes(size))
    with path.open("rb") as file:
        area = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    weights = torch.frombuffer(area, dtype=torch.uint8)
    total = int(weights.sum(dtype=torch.int64))
    with ThreadPoolExecutor(1) as readers:
        moved = threading.Event()
        sums = readers.submit(lambda: [int(weights.sum(dtype=torch.int64)) for _ in iter(moved.is_set, True)])
        memory.settle(weakref.ref(area), rest_s=0.001)
        moved.set()
        assert set(sums.result()) <= {total}
    assert weights.numpy().tobytes() == path.read_bytes()
    if not Path("/sys/kernel/mm/transparent_hugepage/enabled").is_file():
        return
    parts = Path("/proc/self/smaps").read_text().split("VmFlags:")
    assert [part for part in parts if " hg" in part.splitlines()[0]]


def test_weights_that_are_gone_do_not_move() -> None:
    area = mmap.mmap(-1, 4 * memory.HUGE_PAGE)
    gone = weakref.ref(area)
    del area
    memory.settle(gone)
