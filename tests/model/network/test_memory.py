"""What is free is given back, and nothing else."""

import sys
import weakref
from pathlib import Path

import pytest

from lacuna_model.network import memory


class Node:
    """Something that refers to itself, which only a collection frees."""

    def __init__(self) -> None:
        self.itself = self


def test_what_refers_to_itself_alone_is_freed() -> None:
    gone, kept = weakref.ref(Node()), Node()
    memory.give_back_freed()
    assert gone() is None
    assert kept.itself is kept


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and glibc")
def test_memory_between_what_is_kept_goes_back_to_the_system() -> None:
    def resident() -> int:
        fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
        return int(fields["RssAnon"].split()[0])

    blocks = [bytes(100_000) for _ in range(2000)]  # too small for glibc to map each
    blocks = [bytes(block) if place % 50 else block for place, block in enumerate(blocks)]
    before = resident()
    del blocks[1::2], blocks[1::2]
    memory.give_back_freed()
    assert resident() < before - 50_000
