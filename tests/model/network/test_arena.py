"""The memory of keys and values."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.model import tiny

from lacuna_model.network.arena import GROWTH, Arena

CODE = """
from pathlib import Path
import torch
from lacuna_model.hub import machine
from lacuna_model.network.arena import Arena
from lacuna_model.network.config import ModelConfig

CONFIG = ModelConfig(24, 896, 4864, 14, 2, 64, 1000, 1e6)

def own():
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1024

machine.reuse_freed()
arenas, between, before = [], [], own()
for _ in range(12):
    arena = Arena(CONFIG, torch.device("cpu"), torch.bfloat16)
    arena.reserve(2000)
    arenas.append(arena)
    between.append(torch.ones(1000))  # on the heap, where anything may stand
for arena in arenas:
    arena.keys.fill_(1), arena.values.fill_(1)
written = own()
size = sum(arena.num_bytes for arena in arenas) / 1e6
del arena
arenas.clear()
print(size, written - before, own() - before)
"""  # prints MB: those of the arenas, and what the process has more than before, after each step


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_memory_of_dropped_keys_and_values_goes_back_to_the_system() -> None:
    said = subprocess.run([sys.executable, "-P", "-c", CODE], capture_output=True, text=True, check=True).stdout
    size, written, left = map(float, said.split())
    assert size > 100
    assert written > size * 0.8
    assert left < size / 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
def test_rows_stay_when_it_grows_and_when_they_are_gathered(dtype: torch.dtype) -> None:
    arena = Arena(tiny.CONFIG, torch.device("cpu"), dtype)
    shape = (1, tiny.CONFIG.num_kv_heads, 9, tiny.CONFIG.head_dim)
    given = torch.randn((2, *shape), generator=torch.Generator().manual_seed(1))
    arena.exchange(1, *given)
    before = arena.read(1, slice(0, 9))
    for rows, wanted in zip(before, given, strict=True):
        torch.testing.assert_close(rows.float(), wanted, atol=0.02, rtol=0.01)
    arena.move(np.array([2, 5]), 7)
    arena.reserve(2 * GROWTH)
    assert all(map(torch.equal, arena.read(1, slice(0, 9)), before))
    arena.gather(np.array([1, 2, 5, 8]))
    gathered = [rows[:, :, [1, 2, 5, 8]] for rows in before]
    assert all(map(torch.equal, arena.read(1, slice(0, 4)), gathered))
    assert arena.listed(np.array([3, 1, 2])).block.tolist() == [[3, 0], [1, 7], [2, 7]]
