"""Freed memory goes back to the operating system; memory in use stays."""

import sys
import tempfile
import weakref
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@given(parts=st.lists(st.binary(max_size=3000)))
def test_parts_hold_the_bytes_that_a_file_has_for_them(parts: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, start = Path(folder, "weights"), 7
        path.write_bytes(bytes(start) + b"".join(parts))
        room = memory.room({str(at): len(part) for at, part in enumerate(parts)})
        for at, part in enumerate(parts):
            memory.fill(room[str(at)], path, start)
            start += len(part)
        assert [room[str(at)].numpy().tobytes() for at in range(len(parts))] == parts


def test_a_file_that_ends_too_early_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(5))
    with pytest.raises(OSError, match="shorter"):
        memory.fill(memory.room({"": 6})[""], path, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages on request are Linux's")
def test_large_weights_lie_in_huge_pages_where_the_system_has_them() -> None:
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not enabled.is_file() or "[never]" in enabled.read_text():
        pytest.skip("this system has no huge pages on request")
    room = memory.room({"weight": 32 << 20})
    assert room["weight"].data_ptr() % memory.HUGE_PAGE == 0
    advised = [part for part in Path("/proc/self/smaps").read_text().split("VmFlags:") if " hg" in part.splitlines()[0]]
    assert advised
