import json
from pathlib import Path
from typing import Protocol

import msgspec
import pytest
from tests.model import gguf_files

from lacuna_model.adapter import load_adapter
from lacuna_model.errors import WeightsError
from lacuna_model.train import run
from lacuna_model.train.loop import TrainOptions
from lacuna_model.train.recipe import Recipe
from lacuna_model.train.shards import ShardError
from lacuna_model.train.throughput import Figures

from .train_tiny import SAMPLES, write_shard

OPTIONS = TrainOptions(minutes=5.0, max_steps=3, rank=4, batch_size=1, report_steps=1)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> run.Base:
    return run.Base(gguf_files.write(tmp_path_factory.mktemp("base") / "tiny.gguf"))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    write_shard(tmp_path / "shards")
    write_shard(tmp_path / "shards", "held_out-python")
    return tmp_path / "shards"


class Train(Protocol):
    def __call__(
        self, shards: Path, out: Path, *, resume: bool = False, start_from: Path | None = None, **options: object
    ) -> None: ...


@pytest.fixture
def train(base: run.Base) -> Train:
    def trained(
        shards: Path, out: Path, *, resume: bool = False, start_from: Path | None = None, **options: object
    ) -> None:
        recipe = Recipe(train=msgspec.structs.replace(OPTIONS, **options), samples=SAMPLES)
        run.train(base, shards, out, recipe, lambda figures: None, resume=resume, start_from=start_from)

    return trained


def log(out: Path) -> list[Figures]:
    return [json.loads(line) for line in (out / "log.jsonl").read_bytes().splitlines()]


def test_training_leaves_adapter_checkpoint_and_log(train: Train, shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    train(shards, out)
    assert [entry["step"] for entry in log(out)] == [1, 2, 3]
    tensors, notes = load_adapter(out / "adapter.safetensors")
    assert notes["step"] == "3"
    assert "mask_embedding" in tensors


def test_a_checkpoint_scores_held_out_files(train: Train, shards: Path, tmp_path: Path) -> None:
    train(shards, tmp_path / "out", max_steps=2, report_steps=9, checkpoint_minutes=0.0)
    entries = log(tmp_path / "out")
    assert [entry["step"] for entry in entries] == [1, 2]
    assert all(0 <= entry["held_out"]["masked_accuracy"] <= 1 for entry in entries)


def test_a_finished_folder_is_not_overwritten_but_resumed(train: Train, shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    train(shards, out)
    with pytest.raises(WeightsError, match="--resume"):
        train(shards, out)
    train(shards, out, resume=True, max_steps=5)
    assert load_adapter(out / "adapter.safetensors")[1]["step"] == "5"


def test_a_run_can_begin_with_an_adapter(train: Train, shards: Path, tmp_path: Path) -> None:
    train(shards, tmp_path / "first", max_steps=40, learning_rate=0.01)
    train(shards, tmp_path / "second", start_from=tmp_path / "first" / "adapter.safetensors")
    first, second = log(tmp_path / "first"), log(tmp_path / "second")
    assert second[0]["masked_nll"] < first[0]["masked_nll"]


def test_the_adapter_that_was_trained_is_the_one_that_is_scored(
    train: Train, base: run.Base, shards: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    train(shards, out)
    stored, exact = (
        run.score_held_out(base, base.load_canvas(out / name), shards, num_samples=4)
        for name in ("adapter.safetensors", "checkpoint.pt")
    )
    assert stored.slots == exact.slots > 0
    assert stored.masked_nll == pytest.approx(exact.masked_nll, rel=0.02)


def test_stretches_are_scored_as_long_as_they_are_asked_for(base: run.Base, shards: Path) -> None:
    canvas = base.canvas(4)
    short, long, same = (
        run.score_held_out(base, canvas, shards, num_samples=4, context=context)
        for context in (64, run.VALIDATION.context, run.VALIDATION.context)
    )
    assert long == same == run.score_held_out(base, canvas, shards, num_samples=4)
    assert short.base_frontier_nll != long.base_frontier_nll


def test_a_folder_without_shards_says_what_to_do(train: Train, base: run.Base, tmp_path: Path) -> None:
    with pytest.raises(ShardError, match="lacuna train pack"):
        train(tmp_path, tmp_path / "out")
    with pytest.raises(ShardError, match="lacuna train pack"):
        run.score_held_out(base, base.canvas(4), tmp_path, num_samples=1)
