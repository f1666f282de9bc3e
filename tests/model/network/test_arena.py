"""The memory of keys and values goes back to the system where they are dropped."""

import subprocess
import sys

import pytest

CODE = """
from pathlib import Path
import torch
from lacuna_model.network import memory
from lacuna_model.network.arena import Arena
from lacuna_model.network.config import ModelConfig

CONFIG = ModelConfig(24, 896, 4864, 14, 2, 64, 1000, 1e6)

def own():
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1024

memory.reuse_freed()
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
