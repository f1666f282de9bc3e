"""Samples have the prompt of a fill first; what is behind it is the rows' own, and the end closes the answer."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import torch
from tests.model import gguf_files, tiny
from tests.model.fim import tiny_fim
from tests.training.corpora import corpus

from lacuna_model.loading import rows_file
from training import rows
from training.edits import FOLDER, EditExample
from training.loop import Asked
from training.masks import plain_form
from training.rows import COPIED, RowSample, edit, infill
from training.stored import DocumentWriter

MODEL = tiny_fim.loaded()
TOKENIZER, FIM = MODEL.tokenizer, MODEL.fim


STANDING = "\n    return value\n"


def example(updated: str = "\n    return item\n", standing: str = STANDING) -> EditExample:
    path, done = ("p", "2", "MIT", "p/a.py", "python"), ("import os\n", "def f(value):\n", "def f(item):\n")
    return EditExample(*path, *done, standing, updated, "x = 1\n")


def said(tokens: list[int]) -> str:
    return b"".join(map(TOKENIZER.token_bytes, tokens)).decode()


def behind(one: RowSample) -> str:
    return said(list(one.ids[one.answer : -1]))


def test_an_edit_writes_the_lines_anew_behind_the_change() -> None:
    one = edit(example(), TOKENIZER, FIM)
    assert one is not None
    assert one.ids[0] == FIM.prefix
    assert one.ids[one.first - 1] == FIM.middle
    context = [token for token in one.ids[: one.first] if token not in (FIM.prefix, FIM.suffix, FIM.middle)]
    assert said(context) == "import os\ndef f(item):\n\n    return value\nx = 1\n"
    assert one.ids[one.first] == FIM.file_sep
    assert behind(one) == " return item\n"
    assert one.ids[-1] in FIM.ends
    assert not one.is_nothing
    assert one.weights[0] == 1.0
    assert len(one.weights) == len(one.ids) - one.answer
    assert min(one.weights[1:]) == pytest.approx(max(one.weights[1:]) * COPIED)
    assert sum(one.weights[1:]) == pytest.approx(1.0)


def test_an_edit_ends_where_the_lines_are_as_they_were() -> None:
    below = "".join(f"    total += values[{row}]\n" for row in range(6))
    one = edit(example(example().updated + below, example().standing + below), TOKENIZER, FIM)
    assert one is not None
    assert one.ids[-1] not in FIM.ends
    written = said(list(one.ids[one.answer :]))
    assert written.startswith(" return item\n")
    assert len(TOKENIZER.encode(written)) < len(TOKENIZER.encode(" return item\n" + below)) / 2


@pytest.mark.parametrize(
    "updated",
    ["    return " + "item + other_value * " * 8 + "1\n", "        return item\n"],
    ids=["unforeseen", "blanks"],
)
def test_what_nobody_foresees_and_moved_blanks_are_left_out(updated: str) -> None:
    assert edit(example(updated), TOKENIZER, FIM) is None


def test_a_fill_is_taken_from_the_text() -> None:
    rng = Random(0)
    found = [one for one in (infill(tiny.CODE, TOKENIZER, FIM, rng) for _ in range(40)) if one]
    assert len(found) > 20
    for one in found:
        assert one.ids[one.first] == FIM.middle
        assert one.answer == one.first + 1
        assert behind(one) in tiny.CODE
    assert any("\n" in behind(one) for one in found)


def test_a_training_goes_on_and_leaves_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "HELD_OUT", 2)
    monkeypatch.setattr(rows, "NOTICE_S", 0.0)
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
        first = rows.train(asked, kind)
        assert [tokens > 0 for tokens, _ in first.curve] == [False, True, True, True]
        assert "answers right" in said[0]
        second = rows.train(replace(asked, steps=4), kind)
        assert second.samples == first.samples // 3 * 4
        config, tensors = rows_file.stored(tmp_path / "out" / f"{kind}.safetensors", about.config)
        assert (config.kind, config.slots, config.rank) == (kind, 1, rows.KEPT_RANK)
        assert tensors.keys().isdisjoint({"masks"})


def test_a_product_of_a_lower_rank_is_the_nearest_one() -> None:
    drawn = torch.Generator().manual_seed(0)
    low, high = (torch.randn(shape, generator=drawn) for shape in ((6, 40), (30, 6)))
    kept, sizes = rows.nearest(low, high, 4), torch.linalg.svdvals(high @ low)
    assert [one.shape for one in kept] == [(4, 40), (30, 4)]
    error = torch.linalg.norm(high @ low - kept[1] @ kept[0])
    assert torch.isclose(error, torch.linalg.norm(sizes[4:]), rtol=1e-4)
