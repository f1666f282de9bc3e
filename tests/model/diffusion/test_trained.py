"""What a tiny model that has learnt to fill gaps in lists of names does at gaps of unknown length.

The letters of the names follow each other (``x = [c,d,e,f]``): what stands in a gap follows from its two ends, and so
does its length. As DreamOn it has learnt masks, the token that stands for two of them, and the one for none.
Its weights are in ``tests/data/diffusion``, in float16; commit 7bdf788ad has the program that trained it, in a minute.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from safetensors.torch import load_file
from tests.model import checkpoints

from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_model.engine import Engine
from lacuna_model.readers import load_checkpoint

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
LETTERS = "abcdefghijkl"
LONGEST = 5  # tokens of a gap
MOST = 8
# No bias: at a wrong length this model is not as sure as a large one.
SEARCH = {"length": "search", "expand_id": None, "delete_id": None, "bias": [0, 0, 0, 0, 1]}


class Case(NamedTuple):
    text: str
    regions: tuple[Region, ...]
    truth: tuple[str, ...]


def cases(count: int, gaps: int, seed: int) -> Iterator[Case]:
    """Lists with a part cut out, or one of each half."""
    rng = random.Random(seed)
    for _ in range(count):
        size = rng.randint(6, 9)
        first = rng.randint(0, len(LETTERS) - size)
        pieces = list(",".join(LETTERS[first : first + size]))
        text, regions, truth = "x = [", [], []
        for part in [pieces] if gaps == 1 else [pieces[: len(pieces) // 2], pieces[len(pieces) // 2 :]]:
            length = rng.randint(1, min(LONGEST, len(part) - 2))
            begin = rng.randint(1, len(part) - 1 - length)
            text += "".join(part[:begin])
            regions.append(Region(len(text), len(text), max_tokens=MOST))
            truth.append("".join(part[begin : begin + length]))
            text += "".join(part[begin + length :])
        yield Case(f"{text}]\n", tuple(regions), tuple(truth))


def engine_of(folder: Path, **says: object) -> Engine:
    """The trained model, with six slots at first, and what else lacuna.json ``says``."""
    state = {name: tensor.float() for name, tensor in load_file(WEIGHTS).items()}
    checkpoints.write(folder, "Dream", config=CONFIG, changed=state, more=["<|expand|>"], says={"start": 6} | says)
    return Engine(load_checkpoint(folder, precision="float32", device="cpu"))


def fills(engine: Engine, case: Case, *, syntax: bool, **options: object) -> tuple[str, ...]:
    asked = DecodeOptions(syntax=syntax, **options)
    result = engine.fill(InfillRequest(case.text, case.regions, path="a.py", options=asked))
    return result.fills


@pytest.mark.parametrize("says", [{}, SEARCH], ids=["expand", "search"])
def test_gaps_of_unknown_length_are_filled_rightly(tmp_path: Path, says: dict[str, object]) -> None:
    """40 gaps: one and two at once, with and without the constraint."""
    engine = engine_of(tmp_path, **says)
    right = total = 0
    for gaps, count, syntax in ((1, 10, True), (1, 10, False), (2, 5, True), (2, 5, False)):
        for case in cases(count, gaps, seed=gaps):
            found = fills(engine, case, syntax=syntax)
            right += sum(one == other for one, other in zip(found, case.truth, strict=True))
            total += len(case.truth)
    assert total == 40
    assert right >= 38


def test_passes_over_the_slots_alone_change_few_fills(tmp_path: Path) -> None:
    cached, exact = (engine_of(tmp_path / str(refresh), refresh=refresh) for refresh in (8, 1))
    different = sum(
        fills(cached, case, syntax=False) != fills(exact, case, syntax=False) for case in cases(20, 1, seed=5)
    )
    assert different <= 1


def test_drawn_tokens_follow_the_seed(tmp_path: Path) -> None:
    engine = engine_of(tmp_path)
    (case,) = cases(1, 1, seed=11)
    hot = [fills(engine, case, syntax=False, temperature=20.0, seed=seed) for seed in (1, 1, 2, 3, 4)]
    assert hot[0] == hot[1]
    assert len(set(hot)) > 1
    assert fills(engine, case, syntax=False, temperature=0.05, seed=1) == case.truth
