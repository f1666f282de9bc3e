"""Open checkpoints: a pass reads the entire text; loop, constraint and commands are those of the default model."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.model import checkpoints, tiny
from tests.model.network.test_transformer import reference_model
from typer.testing import CliRunner

from lacuna_model.backends.readers import load_checkpoint
from lacuna_model.backends.whole_sequence import LoadedCheckpoint, WholeSequenceModel
from lacuna_model.core.context import Layout, lay_out
from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_model.decode.canvas import Canvas
from lacuna_model.engine import Engine
from lacuna_model.syntax import language_for, parses
from lacuna_server.cli.main import app

SEGMENTS = ("def f(x):\n    y =", "\n    z =", "\n    return z\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dream")
    checkpoints.write(folder, "Dream")
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> LoadedCheckpoint:
    return load_checkpoint(folder, torch.device("cpu"))


def laid_out(model: LoadedCheckpoint, *segments: str) -> Layout:
    return lay_out(segments, model.tokenizer, [model.tokenizer.document_id])


def opened(layout: Layout, size: int = 4, candidate: int = 0) -> list[Canvas]:
    canvases = [Canvas(gap, size, 8, candidate=candidate) for gap in layout.gaps]
    for canvas in canvases:
        canvas.open_block()
    return canvases


@pytest.mark.parametrize("kind", checkpoints.KINDS)
def test_the_log_probabilities_of_slots_equal_those_of_transformers(tmp_path: Path, kind: str) -> None:
    config = checkpoints.write(tmp_path, kind)
    model = load_checkpoint(tmp_path, torch.device("cpu"))
    layout = laid_out(model, *SEGMENTS)
    canvases = opened(layout)
    canvases[1].slots[0] = token = model.tokenizer.encode("x")[0]
    canvases[1].done = model.tokenizer.encode(" total")
    seen = WholeSequenceModel(model, layout).read(canvases)

    masks = [checkpoints.MASK] * 4
    before, between, behind = layout.opening + layout.segments[0], layout.segments[1], layout.segments[2]
    ids = [*before, *masks, *between, *canvases[1].done, token, *masks[1:], *behind, checkpoints.END]
    family = {"Dream": "qwen2", "llada": "llama-untied", "a2d-qwen3": "qwen3"}[kind]
    reference = reference_model(family, config, tiny.state(config))
    everything = torch.zeros((1, 1, len(ids), len(ids)))
    with torch.inference_mode():
        logits = reference(torch.tensor([ids]), attention_mask=everything).logits[0]
    second = len(before) + 4 + len(between) + len(canvases[1].done)
    for marginals, start, slots in ((seen[0], len(before), range(1, 4)), (seen[1], second, range(1, 4))):
        assert marginals is not None
        assert marginals.anywhere
        for slot in slots:
            row = logits[start + slot - config.shift].clone()
            row[list(model.tokenizer.special_ids - {checkpoints.END})] = -torch.inf
            said = row.log_softmax(-1)
            best = [i for i in marginals.ids[slot].tolist() if i != checkpoints.END]
            expected = [i for i in said.topk(len(best) + 1).indices.tolist() if i != checkpoints.END][: len(best)]
            assert best == expected
            others = [rank for rank, i in enumerate(marginals.ids[slot].tolist()) if i != checkpoints.END]
            np.testing.assert_allclose(marginals.logp[slot][others], said[best].numpy(), atol=1e-3)


def test_bfloat16_gives_about_the_same_entropy(folder: Path, model: LoadedCheckpoint) -> None:
    narrow = load_checkpoint(folder, torch.device("cpu"), torch.bfloat16)
    layout = laid_out(model, *SEGMENTS)
    for one, other in zip(*(WholeSequenceModel(m, layout).read(opened(layout)) for m in (model, narrow)), strict=True):
        assert one is not None
        assert other is not None
        np.testing.assert_allclose(one.entropy, other.entropy, atol=0.1)


def test_a_closed_canvas_is_text_and_is_not_read(model: LoadedCheckpoint) -> None:
    layout = laid_out(model, *SEGMENTS)
    canvases = opened(layout)
    canvases[0].done, canvases[0].slots, canvases[0].closed = model.tokenizer.encode(" x"), [], True
    reader = WholeSequenceModel(model, layout)
    first, second = reader.read(canvases)
    assert first is None
    assert second is not None
    assert reader.passes == 1


def test_candidates_do_not_see_each_other(model: LoadedCheckpoint) -> None:
    layout = laid_out(model, *SEGMENTS)
    alone, beside = opened(layout), opened(layout, candidate=1)
    beside[0].slots[0] = model.tokenizer.encode("x")[0]
    reader = WholeSequenceModel(model, layout)
    together, single = reader.read([*alone, *beside]), WholeSequenceModel(model, layout).read(alone)
    assert reader.passes == 2
    for one, other in zip(together[:2], single, strict=True):
        assert one is not None
        assert other is not None
        np.testing.assert_array_equal(one.ids, other.ids)


def test_a_certain_end_token_is_the_best_candidate(model: LoadedCheckpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = laid_out(model, "x =", "\n")

    def ending(hidden: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(len(hidden), model.config.vocab_size)
        logits[2, checkpoints.END] = 20.0
        return logits

    monkeypatch.setattr(model.transformer, "head", ending)
    (seen,) = WholeSequenceModel(model, layout).read(opened(layout))
    assert seen is not None
    assert (seen.ids[:, 0] == checkpoints.END).tolist() == [False, False, True, False]


def test_a_likelier_fill_scores_higher(model: LoadedCheckpoint) -> None:
    layout = laid_out(model, "x =", "\n")
    reader = WholeSequenceModel(model, layout)
    canvases = opened(layout, size=1)
    (seen,) = reader.read(canvases)
    assert seen is not None
    likely, unlikely = (reader.likelihood([[int(seen.ids[0, rank])]]) for rank in (0, -1))
    assert likely > unlikely
    assert reader.likelihood([[]]) == 0.0


@pytest.mark.parametrize("candidates", [1, 2])
def test_an_engine_fills_several_gaps_validly(folder: Path, candidates: int) -> None:
    engine = Engine.load(str(folder))
    text = "def f(x):\n    y = \n    return (\n\ndef g():\n    pass\n"
    places = text.index("\n    return"), text.index("\n\ndef g")
    regions = tuple(Region(place, place, max_tokens=8) for place in places)
    result = engine.fill(InfillRequest(text, regions, path="a.py", candidates=candidates, options=DecodeOptions()))
    python = language_for("a.py")
    assert python is not None
    assert result.status == "ok"
    assert parses(result.text.encode(), python)
    assert result.stats.nfe > 0


def test_the_command_line_takes_a_folder(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = \ny = 1\n")
    command = ["complete", str(file), "--at", "1:4", "--model", str(folder), "--max-tokens", "4", "--json"]
    done = CliRunner().invoke(app, [*command, "--no-workspace"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["status"] == "ok"
