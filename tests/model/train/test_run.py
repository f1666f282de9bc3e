import json
from pathlib import Path

import pytest
from tests.model import tiny

from lacuna_model.adapter import load_adapter
from lacuna_model.assembly import build_transformer, fuse
from lacuna_model.errors import LacunaError, WeightsError
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.train import run
from lacuna_model.train.documents import Document, DocumentWriter
from lacuna_model.train.loop import TrainOptions

OPTIONS = TrainOptions(minutes=5.0, max_steps=3, rank=4, samples_per_step=1, report_steps=1)


@pytest.fixture(autouse=True)
def _tiny_base(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = fuse(tiny.state(), tiny.CONFIG)
    base = build_transformer(tiny.CONFIG, run.narrow(fused))
    monkeypatch.setattr(run, "frozen_base", lambda model: (tiny.CONFIG, Tokenizer(tiny.VOCABULARY), fused, base))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for split in ("train", "held_out"):
        with DocumentWriter(tmp_path / "python" / f"{split}.jsonl.zst") as writer:
            writer.write(Document("tiny", "1.0", "MIT", "tiny.py", "python", tiny.CODE))
    return tmp_path


def test_training_leaves_adapter_checkpoint_and_log(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run.train_main(corpus, out, options=OPTIONS)
    log = [json.loads(line) for line in (out / "log.jsonl").read_bytes().splitlines()]
    assert [entry["step"] for entry in log] == [1, 2, 3]
    tensors, notes = load_adapter(out / "adapter.safetensors")
    assert notes["steps"] == "3"
    assert "mask_embedding" in tensors


def test_a_checkpoint_scores_held_out_files(corpus: Path, tmp_path: Path) -> None:
    options = TrainOptions(minutes=5.0, max_steps=2, rank=4, samples_per_step=1, report_steps=9, checkpoint_minutes=0.0)
    run.train_main(corpus, tmp_path / "out", options=options)
    log = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_bytes().splitlines()]
    assert [entry["step"] for entry in log] == [1, 2]
    assert all(0 <= entry["held_out"]["masked_accuracy"] <= 1 for entry in log)


def test_a_finished_folder_is_not_overwritten_but_resumed(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run.train_main(corpus, out, options=OPTIONS)
    with pytest.raises(WeightsError, match="--resume"):
        run.train_main(corpus, out, options=OPTIONS)
    longer = TrainOptions(minutes=5.0, max_steps=5, rank=4, samples_per_step=1, report_steps=1)
    run.train_main(corpus, out, options=longer, resume=True)
    assert load_adapter(out / "adapter.safetensors")[1]["steps"] == "5"


def test_the_adapter_that_was_trained_is_the_one_that_is_scored(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    run.train_main(corpus, out, options=OPTIONS)
    report = run.validate_main(corpus, out / "adapter.safetensors", num_samples=4, as_json=True)
    assert json.loads(capsys.readouterr().out)["slots"] == report.slots > 0


def test_a_missing_corpus_is_named(tmp_path: Path) -> None:
    with pytest.raises(LacunaError, match=r"train\.jsonl\.zst"):
        run.train_main(tmp_path, tmp_path / "out", options=OPTIONS)
