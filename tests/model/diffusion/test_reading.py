"""Open checkpoints: a pass reads the entire text; loop, constraint and commands are those of the default model."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from tests.model import checkpoints, tiny
from tests.model.network.test_transformer import reference_model

from lacuna_model.core.constraint import Run
from lacuna_model.core.context import Layout, lay_out
from lacuna_model.core.params import AnswerChat, ChatMessage, DecodeOptions, EditLines, FillGaps, InfillRequest, Region
from lacuna_model.decode.fill import Fill
from lacuna_model.decode.sampling import RULED_OUT
from lacuna_model.diffusion.guess import Marginals
from lacuna_model.diffusion.reading import FullReader, LoadedDiffusion
from lacuna_model.engine import Engine
from lacuna_model.readers import load_checkpoint
from lacuna_model.syntax import language_for, parses

SEGMENTS = ("def f(x):\n    y =", "\n    z =", "\n    return z\n")
# Four slots a gap, all read in every pass.
FOUR = {"length": "expand", "start": 4, "refresh": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dream")
    checkpoints.write(folder, "Dream", says=FOUR)
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> LoadedDiffusion:
    return load_checkpoint(folder, precision="float32", device="cpu")


def laid_out(model: LoadedDiffusion, *segments: str) -> Layout:
    return lay_out(segments, model.tokenizer, heals=False)


def opened(layout: Layout, candidate: int = 0) -> list[Fill]:
    return [Fill(gap, 8, candidate=candidate) for gap in layout.gaps]


def reader(model: LoadedDiffusion, layout: Layout) -> FullReader:
    return FullReader(model, layout, DecodeOptions())


def seen_by(reads: FullReader, fills: list[Fill]) -> list[list[Marginals]]:
    """What one pass says of each slot of fills, none of which is finished."""
    assert reads.read(fills) == [None] * len(fills)
    return [list(reads.slots(fill).seen.values()) for fill in fills]


@pytest.mark.parametrize("kind", ["Dream", "llada", "a2d-qwen3", "CoDA"])
def test_the_log_probabilities_of_slots_equal_those_of_transformers(tmp_path: Path, kind: str) -> None:
    config = checkpoints.write(tmp_path, kind, says=FOUR | {"block_size": 0})
    model = load_checkpoint(tmp_path, precision="float32", device="cpu")
    layout = laid_out(model, *SEGMENTS)
    fills = opened(layout)
    total, token = model.tokenizer.encode(" total")[0], model.tokenizer.encode("x")[0]
    fills[1].tokens = [total, token]
    seen = seen_by(reader(model, layout), fills)

    masks = [checkpoints.MASK] * 4
    before, between, behind = layout.segments
    ids = [*before, *masks, *between, total, token, *masks, *behind]
    reference = reference_model(checkpoints.SHAPES[kind], config, tiny.state(config))
    everything = torch.zeros((1, 1, len(ids), len(ids)))
    with torch.inference_mode():
        logits = reference(torch.tensor([ids]), attention_mask=everything).logits[0]
    second = len(before) + 4 + len(between)
    for marginals, start, slots in ((seen[0], len(before), range(4)), (seen[1], second, range(2, 6))):
        for slot in slots:
            said = logits[start + slot - model.how.shift].log_softmax(-1)
            allowed = said.clone()
            allowed[list(model.tokenizer.special_ids)] = -torch.inf
            best = marginals[slot].ids[0].tolist()
            assert best == allowed.topk(len(best)).indices.tolist()
            np.testing.assert_allclose(marginals[slot].logp[0], said[best].numpy(), atol=1e-3)


def test_prepared_weights_say_about_the_same(tmp_path: Path) -> None:
    """In 8 bit, with the kernels in C where they run: a pass over the whole text, and one over the slots alone."""
    config = msgspec.structs.replace(
        checkpoints.KINDS["llada"],
        hidden_size=256,
        intermediate_size=256,
        num_heads=4,
        num_kv_heads=2,
        head_dim=64,
        vocab_size=512,
    )
    checkpoints.write(tmp_path, "llada", config=config, says=FOUR | {"refresh": 8})
    exact = load_checkpoint(tmp_path, precision="float32", device="cpu")
    small = load_checkpoint(tmp_path, threads=1, device="cpu")
    layout = laid_out(exact, *SEGMENTS)
    readers, fills = [reader(one, layout) for one in (exact, small)], opened(layout)
    for _ in range(2):
        exactly, about = ([row.entropy for rows in seen_by(reads, fills) for row in rows] for reads in readers)
        np.testing.assert_allclose(about, exactly, atol=0.2)
    assert readers[0].slots(fills[0]).tokens == readers[1].slots(fills[0]).tokens


def finished(reads: FullReader, fills: list[Fill]) -> list[Run]:
    """What the constraint gets of the open fills once their guesses are whole."""
    for _ in range(99):
        found = [run for run in reads.read(fills) if run is not None]
        if found:
            assert len(found) == sum(fill.is_open for fill in fills)
            return found
    raise AssertionError("the guess has no end")


def test_what_follows_a_refused_token_is_denoised_again(model: LoadedDiffusion) -> None:
    """The constraint has put another token into the second slot: the rest is what a new reader finds behind it."""
    layout = laid_out(model, *SEGMENTS)
    fills, reads = opened(layout), reader(model, layout)
    first, second = finished(reads, fills)
    fills[0].tokens = [first.tokens[0], model.tokenizer.encode("x")[0]]
    fills[1].end_with(second.tokens[:-1])
    (again,), (fresh,) = finished(reads, fills), finished(reader(model, layout), fills)
    assert again.tokens == fresh.tokens
    assert len(again) == 5  # four slots and the end
    assert again.tokens[-1] == model.tokenizer.eog_id


def test_no_alternative_of_a_token_is_a_mark(tmp_path: Path) -> None:
    """What changes the length of a gap, or ends it, is neither a fork nor offered to the constraint."""
    state = tiny.state(checkpoints.KINDS["Dream"])
    state["head"] = state["head"].clone()
    state["head"][checkpoints.EXPAND] *= 1.6
    checkpoints.write(tmp_path, "Dream", changed=state, more=["<|expand|>"], says={"start": 4})
    model = load_checkpoint(tmp_path, precision="float32", device="cpu")
    layout = laid_out(model, "x =", "\n")
    (run,) = finished(reader(model, layout), opened(layout))
    marked = np.isin(run.ids[:-1], [checkpoints.EXPAND, checkpoints.END])
    assert marked.any()
    assert (run.logp[:-1][marked] == RULED_OUT).all()


def test_an_instruct_model_gets_the_chat_of_its_template(tmp_path: Path) -> None:
    checkpoints.write(tmp_path, "Dream")
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    template = "{{ bos_token }}{% for one in messages %}{{ one.role }}: {{ one.content }}\n{% endfor %}"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": template}))
    engine = Engine.load(str(tmp_path))
    assert isinstance(engine.model, LoadedDiffusion)
    assert engine.model.chat is not None
    asked = InfillRequest("", (Region(0, 0, max_tokens=6),), task=AnswerChat((ChatMessage("user", "x = 1"),)))
    result = engine.fill(asked)
    assert result.status == "ok"
    assert 0 < result.stats.nfe <= 6
    edited = engine.fill(InfillRequest("x = 1\n", (Region(0, 6, max_tokens=4),), EditLines("rename x"), path="a.py"))
    assert edited.status in ("ok", "no_valid_fill")
    assert edited.stats.nfe > 0


@pytest.fixture(scope="module")
def in_blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdar")
    checkpoints.write(folder, "sdar", more=checkpoints.FIM)
    return folder


@pytest.mark.parametrize("candidates", [1, 2])
@pytest.mark.parametrize("kind", ["folder", "in_blocks"])
def test_an_engine_fills_several_gaps_validly(request: pytest.FixtureRequest, kind: str, candidates: int) -> None:
    """What random weights say rarely can be a fill; the trained model of :mod:`.test_trained` has to fill its gaps."""
    engine = Engine.load(str(request.getfixturevalue(kind)))
    text = "def f(x):\n    y = \n    return (\n\ndef g():\n    pass\n"
    places = text.index("\n    return"), text.index("\n\ndef g")
    regions = tuple(Region(place, place, max_tokens=8) for place in places)
    asked = InfillRequest(text, regions, path="a.py", task=FillGaps(candidates))
    result = engine.fill(asked)
    python = language_for("a.py")
    assert python is not None
    assert parses(asked.filled(result.fills).encode(), python) if result.status == "ok" else result.fills == ("", "")
    assert result.status in ("ok", "no_valid_fill")
    assert result.stats.nfe > 0
