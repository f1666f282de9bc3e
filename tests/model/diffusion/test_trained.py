"""What a model that has learnt a small language does at gaps of unknown length."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.model.diffusion import trained

from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_model.diffusion.reading import LoadedDiffusion
from lacuna_model.engine import Engine
from lacuna_model.readers import load_checkpoint

MOST = 8
# No bias: at a wrong length this model is not as sure as a large one.
SEARCH = {"length": "search", "expand_id": None, "delete_id": None, "bias": [0, 0, 0, 0, 1]}


@dataclass(frozen=True)
class Case:
    text: str
    regions: tuple[Region, ...]
    truth: tuple[str, ...]


def cases(count: int, gaps: int, seed: int) -> Iterator[Case]:
    """Lists with cut out parts."""
    rng = random.Random(seed)
    while count:
        pieces = trained.names(rng)
        cuts = trained.gaps(rng, pieces, gaps)
        if len(cuts) < gaps:
            continue
        count -= 1
        text, regions, truth, at = "x = [", [], [], 0
        for cut in cuts:
            text += "".join(pieces[at : cut.start])
            regions.append(Region(len(text), len(text), max_tokens=MOST))
            truth.append("".join(pieces[cut.start : cut.stop]))
            at = cut.stop
        yield Case(text + "".join(pieces[at:]) + "]\n", tuple(regions), tuple(truth))


def model_of(folder: Path, tmp_path: Path, **says: object) -> LoadedDiffusion:
    """The trained model, read as lacuna.json then ``says``."""
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    trained.say(tmp_path, **says)
    return load_checkpoint(tmp_path, precision="float32", device="cpu")


def fills(engine: Engine, case: Case, *, syntax: bool, **options: object) -> tuple[str, ...]:
    asked = DecodeOptions(syntax=syntax, **options)
    result = engine.fill(InfillRequest(case.text, case.regions, path="a.py", options=asked))
    return result.fills


@pytest.mark.parametrize("says", [{}, SEARCH], ids=["expand", "search"])
def test_gaps_of_unknown_length_are_filled_rightly(tiny_folder: Path, tmp_path: Path, says: dict[str, object]) -> None:
    """40 gaps: one and two at once, with and without the constraint."""
    engine = Engine(model_of(tiny_folder, tmp_path, **says))
    right = total = 0
    for gaps, count, syntax in ((1, 10, True), (1, 10, False), (2, 5, True), (2, 5, False)):
        for case in cases(count, gaps, seed=gaps):
            found = fills(engine, case, syntax=syntax)
            right += sum(one == other for one, other in zip(found, case.truth, strict=True))
            total += len(case.truth)
    assert total == 40
    assert right >= 38


def test_passes_over_the_slots_alone_change_few_fills(tiny_folder: Path, tmp_path: Path) -> None:
    cached, exact = (
        Engine(model_of(tiny_folder, folder, refresh=refresh))
        for folder, refresh in ((made(tmp_path, "a"), 8), (made(tmp_path, "b"), 1))
    )
    different = sum(
        fills(cached, case, syntax=False) != fills(exact, case, syntax=False) for case in cases(20, 1, seed=5)
    )
    assert different <= 1


def made(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name


def test_drawn_tokens_follow_the_seed(tiny_folder: Path, tmp_path: Path) -> None:
    engine = Engine(model_of(tiny_folder, tmp_path))
    (case,) = cases(1, 1, seed=11)
    hot = [fills(engine, case, syntax=False, temperature=20.0, seed=seed) for seed in (1, 1, 2, 3, 4)]
    assert hot[0] == hot[1]
    assert len(set(hot)) > 1
    assert fills(engine, case, syntax=False, temperature=0.05, seed=1) == case.truth
