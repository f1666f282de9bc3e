"""Additions learn answers; a training goes on where it stopped and leaves a file of one form."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.model import gguf_files, tiny
from tests.training.corpora import corpus
from tests.training.rows.test_samples import example

from lacuna_model.loading import rows_file
from training.edits import FOLDER
from training.loop import Asked
from training.masks.training import plain_form
from training.rows import training
from training.stored import DocumentWriter


def test_a_training_goes_on_and_leaves_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "HELD_OUT", 2)
    monkeypatch.setattr(training, "NOTICE_S", 0.0)
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    texts = corpus(tmp_path / "corpus", python=[tiny.CODE * 2])
    for split in ("train", "held_out"):
        with DocumentWriter(texts / FOLDER / split / "pypi-p.jsonl.zst") as writer:
            writer.write(example())
    said = list[str]()
    asked = Asked(path=gguf, corpus=texts, out=tmp_path / "out", steps=3, device="cpu", threads=1, say=said.append)
    about, _ = plain_form(gguf, drafts=False)
    for kind in ("edit", "infill"):
        said.clear()
        first = training.train(asked, kind)
        assert [tokens > 0 for tokens, _ in first.curve] == [False, True, True, True]
        assert "answers right" in said[0]
        second = training.train(replace(asked, steps=4), kind)
        assert second.samples == first.samples // 3 * 4
        config, tensors = rows_file.stored(tmp_path / "out" / f"{kind}.safetensors", about.config)
        assert (config.kind, config.slots, config.rank) == (kind, 1, training.KEPT_RANK)
        assert tensors.keys().isdisjoint({"masks"})


def test_a_product_of_a_lower_rank_is_the_nearest_one() -> None:
    drawn = torch.Generator().manual_seed(0)
    low, high = (torch.randn(shape, generator=drawn) for shape in ((6, 40), (30, 6)))
    kept, sizes = training.nearest(low, high, 4), torch.linalg.svdvals(high @ low)
    assert [one.shape for one in kept] == [(4, 40), (30, 4)]
    error = torch.linalg.norm(high @ low - kept[1] @ kept[0])
    assert torch.isclose(error, torch.linalg.norm(sizes[4:]), rtol=1e-4)
