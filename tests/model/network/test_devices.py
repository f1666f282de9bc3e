"""Freed memory goes back to the operating system; memory in use stays."""

import errno
import sys
from pathlib import Path

import pytest
import torch

from lacuna_model.core.errors import DeviceError
from lacuna_model.network import devices
from lacuna_model.network.devices import HOST, choose_device, default_precision


class Node:
    """An object that refers to itself, so that only the garbage collector frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and glibc")
def test_free_memory_between_blocks_in_use_goes_back_to_the_system() -> None:
    def resident() -> int:
        fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
        return int(fields["RssAnon"].split()[0])

    blocks = [bytes(100_000) for _ in range(2000)]  # too small for glibc to map each
    blocks = [bytes(block) if place % 50 else block for place, block in enumerate(blocks)]
    before = resident()
    del blocks[1::2], blocks[1::2]
    devices.give_back_freed()
    assert resident() < before - 50_000


def test_an_allocation_that_failed_is_told_from_other_errors() -> None:
    for allocate in (lambda: bytearray(1 << 60), lambda: torch.empty(1 << 60)):
        with pytest.raises((MemoryError, RuntimeError)) as failed:
            allocate()
        assert devices.ran_out(failed.value)
    assert devices.ran_out(torch.OutOfMemoryError("CUDA out of memory"))
    assert devices.ran_out(OSError(errno.ENOMEM, "Cannot allocate memory"))
    damaged = ValueError("a damaged file")
    damaged.__cause__ = OSError(errno.ENOMEM, "Cannot allocate memory")
    assert devices.ran_out(damaged)
    assert not devices.ran_out(OSError(errno.ENOENT, "No such file"))
    assert not devices.ran_out(RuntimeError("shapes do not match"))
    assert not devices.ran_out(ValueError("can't allocate memory"))


@pytest.fixture
def count(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: request.param > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: request.param)


@pytest.mark.usefixtures("count")
@pytest.mark.parametrize(
    ("count", "wanted", "chosen"),
    [(0, "", "cpu"), (1, "", "cuda"), (1, "cpu", "cpu"), (1, "cuda", "cuda"), (2, "cuda:1", "cuda:1")],
    indirect=["count"],
)
def test_the_wanted_device_is_chosen_and_else_the_fastest(wanted: str, chosen: str) -> None:
    assert choose_device(wanted) == torch.device(chosen)


def test_apple_s_gpu_is_used_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("mps") == torch.device("mps")
    assert default_precision(choose_device("mps"), drafts=True) == "bfloat16"
    assert choose_device("") == HOST


@pytest.mark.usefixtures("count")
@pytest.mark.parametrize(
    ("count", "wanted"), [(0, "cuda"), (1, "cuda:1"), (1, "gpu"), (1, "meta"), (1, "mps")], indirect=["count"]
)
def test_a_missing_device_is_an_error_of_one_line(wanted: str) -> None:
    with pytest.raises(DeviceError, match=wanted) as caught:
        choose_device(wanted)
    assert "\n" not in str(caught.value)
