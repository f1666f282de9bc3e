"""A tiny model that has learnt to fill gaps in lists of names whose letters follow each other.

``x = [c,d,e,f]``: what stands in a gap follows from its two ends, and so does its length. As DreamOn it has learnt
masks, the token that stands for two of them, and the one that stands for none.

Its weights are in ``tests/data/diffusion``, in float16; commit 7bdf788ad has the program that trained it, in a minute.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from safetensors.torch import load_file
from tests.model import checkpoints

CONFIG = msgspec.structs.replace(
    checkpoints.CONFIG,
    num_layers=2,
    hidden_size=64,
    intermediate_size=128,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    attention_bias=True,
    rms_norm_eps=1e-6,
)
WEIGHTS = Path(__file__).parents[2] / "data" / "diffusion" / "lists.safetensors"
MORE = "<|expand|>"
LETTERS = "abcdefghijkl"
LONGEST = 5  # tokens of a gap


def names(rng: random.Random) -> list[str]:
    """The pieces of a list: names and commas."""
    count = rng.randint(5, 9)
    first = rng.randint(0, len(LETTERS) - count)
    return list(",".join(LETTERS[first : first + count]))


def gaps(rng: random.Random, pieces: Sequence[str], count: int) -> list[range]:
    """Gaps in a list, a name on both sides of each at least."""
    cuts: list[range] = []
    start = 1
    for left in range(count, 0, -1):
        size = rng.randint(1, min(LONGEST, (len(pieces) - 1 - start) // left - 1))
        begin = rng.randint(start, len(pieces) - 1 - size - 3 * (left - 1))
        cuts.append(range(begin, begin + size))
        start = begin + size + 2
        if len(pieces) - 1 - start < 3:
            break
    return cuts


def write(folder: Path) -> None:
    """Writes the trained model into a folder."""
    state = {name: tensor.float() for name, tensor in load_file(WEIGHTS).items()}
    checkpoints.write(folder, "Dream", config=CONFIG, changed=state, more=[MORE])
    say(folder)


def say(folder: Path, **says: Any) -> None:
    """Writes lacuna.json: six slots at first, and what else it ``says``."""
    (folder / "lacuna.json").write_text(json.dumps({"start": 6} | says))
