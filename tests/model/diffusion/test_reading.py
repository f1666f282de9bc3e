"""Open checkpoints: a pass reads the entire text; loop, constraint and commands are those of the default model."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from tests.model import checkpoints, tiny
from tests.model.network.test_transformer import reference_model
from typer.testing import CliRunner

from lacuna_model.backends.readers import load_checkpoint
from lacuna_model.core.context import Layout, lay_out
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import ChatMessage, DecodeOptions, InfillRequest, Region
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.decode.open_slots import RULED_OUT
from lacuna_model.diffusion.model import LoadedDiffusion
from lacuna_model.diffusion.reading import FullReader
from lacuna_model.engine import Engine
from lacuna_model.syntax import language_for, parses
from lacuna_server.cli import main as cli

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


def opened(layout: Layout, candidate: int = 0) -> list[Canvas]:
    canvases = [Canvas(gap, 8, 8, candidate=candidate) for gap in layout.gaps]
    for canvas in canvases:
        canvas.open_block()
    return canvases


def reader(model: LoadedDiffusion, layout: Layout) -> FullReader:
    return FullReader(model, layout, DecodeOptions())


@pytest.mark.parametrize("kind", ["Dream", "llada", "a2d-qwen3", "CoDA"])
def test_the_log_probabilities_of_slots_equal_those_of_transformers(tmp_path: Path, kind: str) -> None:
    config = checkpoints.write(tmp_path, kind, says=FOUR | {"block_size": 0})
    model = load_checkpoint(tmp_path, precision="float32", device="cpu")
    layout = laid_out(model, *SEGMENTS)
    canvases = opened(layout)
    total, token = model.tokenizer.encode(" total")[0], model.tokenizer.encode("x")[0]
    canvases[1].slots[:2] = [total, token]
    seen = reader(model, layout).read(canvases)

    masks = [checkpoints.MASK] * 4
    before, between, behind = layout.segments
    ids = [*before, *masks, *between, total, token, *masks, *behind]
    reference = reference_model(checkpoints.SHAPES[kind], config, tiny.state(config))
    everything = torch.zeros((1, 1, len(ids), len(ids)))
    with torch.inference_mode():
        logits = reference(torch.tensor([ids]), attention_mask=everything).logits[0]
    second = len(before) + 4 + len(between)
    for marginals, start, slots in ((seen[0], len(before), range(4)), (seen[1], second, range(2, 6))):
        assert marginals is not None
        assert marginals.guess
        assert marginals.waits
        for slot in slots:
            said = logits[start + slot - model.how.shift].log_softmax(-1)
            allowed = said.clone()
            allowed[list(model.tokenizer.special_ids)] = -torch.inf
            best = marginals.ids[slot].tolist()
            assert best == allowed.topk(len(best)).indices.tolist()
            np.testing.assert_allclose(marginals.logp[slot], said[best].numpy(), atol=1e-3)


def test_bfloat16_gives_about_the_same_entropy(folder: Path, model: LoadedDiffusion) -> None:
    narrow = load_checkpoint(folder, precision="bfloat16", device="cpu")
    layout = laid_out(model, *SEGMENTS)
    for one, other in zip(*(reader(m, layout).read(opened(layout)) for m in (model, narrow)), strict=True):
        assert one is not None
        assert other is not None
        np.testing.assert_allclose(one.entropy, other.entropy, atol=0.1)


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
    readers, canvases = [reader(one, layout) for one in (exact, small)], opened(layout)
    for _ in range(2):
        for one, other in zip(*(reads.read(canvases) for reads in readers), strict=True):
            assert one is not None
            assert other is not None
            np.testing.assert_allclose(one.entropy, other.entropy, atol=0.2)
    assert readers[0].tokens(canvases[0]) == readers[1].tokens(canvases[0])


def test_a_closed_canvas_is_text_and_is_not_read(model: LoadedDiffusion) -> None:
    layout = laid_out(model, *SEGMENTS)
    canvases = opened(layout)
    canvases[0].end_with(model.tokenizer.encode(" x"))
    reads = reader(model, layout)
    first, second = reads.read(canvases)
    assert first is None
    assert second is not None
    assert reads.passes == 1


def test_candidates_share_passes_and_do_not_see_each_other(model: LoadedDiffusion) -> None:
    layout = laid_out(model, *SEGMENTS)
    alone, beside = opened(layout), opened(layout, candidate=1)
    beside[0].slots[0] = model.tokenizer.encode("x")[0]
    reads = reader(model, layout)
    together, single = reads.read([*alone, *beside]), reader(model, layout).read(alone)
    assert reads.passes == 1
    for one, other in zip(together[:2], single, strict=True):
        assert one is not None
        assert other is not None
        np.testing.assert_array_equal(one.ids, other.ids)
    assert together[2] is not None
    assert together[2].ids[0, 0] == beside[0].slots[0]


def finished(reads: FullReader, canvases: list[Canvas]) -> list[Marginals]:
    """What the constraint gets once the guesses are whole."""
    for _ in range(99):
        seen = reads.read(canvases)
        if all(one is not None and not one.waits for one in seen):
            return [one for one in seen if one is not None]
    raise AssertionError("the guess has no end")


def test_a_refused_slot_is_denoised_again_with_what_is_proved(model: LoadedDiffusion) -> None:
    """The constraint has put another token into the second slot, and kept the last one; the third one is a hole."""
    layout = laid_out(model, *SEGMENTS)
    canvases, reads = opened(layout), reader(model, layout)
    first, _ = finished(reads, canvases)
    proved = [int(first.ids[0, 0]), model.tokenizer.encode("x")[0]]
    canvases[0].slots[:4] = [*proved, None, int(first.ids[3, 0])]
    canvases[0].slots[4:5] = [model.tokenizer.eog_id]
    canvases[1].end_with([proved[1]])
    while (seen := reads.read(canvases)[0]) is not None and seen.waits:
        pass
    assert seen is not None
    assert [*seen.ids[:2, 0], seen.ids[3, 0]] == [*proved, first.ids[3, 0]]
    assert seen.ids[4, 0] == model.tokenizer.eog_id
    # The hole has the token that a pass over all the rest finds.
    alone = opened(layout)
    alone[0].slots = [*proved, None, int(first.ids[3, 0]), model.tokenizer.eog_id]
    alone[1].end_with([proved[1]])
    fresh = reader(model, layout).read(alone)[0]
    assert fresh is not None
    assert seen.ids[2, 0] == fresh.ids[2, 0]


def test_no_alternative_of_a_token_is_a_mark(tmp_path: Path) -> None:
    """What changes the length of a gap, or ends it, is neither a fork nor offered to the constraint."""
    state = tiny.state(checkpoints.KINDS["Dream"])
    state["head"] = state["head"].clone()
    state["head"][checkpoints.EXPAND] *= 1.6
    checkpoints.write(tmp_path, "Dream", changed=state, more=["<|expand|>"], says={"start": 4})
    model = load_checkpoint(tmp_path, precision="float32", device="cpu")
    layout = laid_out(model, "x =", "\n")
    (seen,) = finished(reader(model, layout), opened(layout))
    marked = np.isin(seen.ids[:-1], [checkpoints.EXPAND, checkpoints.END])
    assert marked.any()
    assert (seen.logp[:-1][marked] == RULED_OUT).all()


def test_a_likelier_fill_scores_higher(model: LoadedDiffusion) -> None:
    layout = laid_out(model, "x =", "\n")
    reads = reader(model, layout)
    (seen,) = reads.read(opened(layout))
    assert seen is not None
    likely, unlikely = (reads.likelihood([[int(seen.ids[slot, rank]) for slot in range(4)]]) for rank in (0, -1))
    assert likely > unlikely
    assert reads.likelihood([[]]) == 0.0


def test_an_instruct_model_gets_the_chat_of_its_template(tmp_path: Path) -> None:
    checkpoints.write(tmp_path, "Dream")
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    template = "{{ bos_token }}{% for one in messages %}{{ one.role }}: {{ one.content }}\n{% endfor %}"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": template}))
    engine = Engine.load(str(tmp_path))
    assert isinstance(engine.model, LoadedDiffusion)
    assert engine.model.chat is not None
    asked = InfillRequest("", (Region(0, 0, max_tokens=6),), chat=(ChatMessage("user", "x = 1"),))
    result = engine.fill(asked)
    assert result.status == "ok"
    assert 0 < result.stats.nfe <= 6
    edited = engine.fill(InfillRequest("x = 1\n", (Region(0, 6, max_tokens=4, instruction="rename x"),), path="a.py"))
    assert edited.status in ("ok", "no_valid_fill")
    assert edited.stats.nfe > 0


def test_a_model_without_a_template_takes_no_instructions(folder: Path) -> None:
    with pytest.raises(RequestError, match="no chat template"):
        Engine.load(str(folder)).fill(InfillRequest("x = 1\n", (Region(0, 6, instruction="rename x"),), path="a.py"))


@pytest.fixture(scope="module")
def in_blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdar")
    checkpoints.write(folder, "sdar", more=checkpoints.FIM)
    return folder


@pytest.mark.parametrize("candidates", [1, 2])
@pytest.mark.parametrize("kind", ["folder", "in_blocks"])
def test_an_engine_fills_several_gaps_validly_or_not(
    request: pytest.FixtureRequest, kind: str, candidates: int
) -> None:
    """What random weights say rarely can be a fill; the trained model of :mod:`.trained` has to fill its gaps."""
    engine = Engine.load(str(request.getfixturevalue(kind)))
    text = "def f(x):\n    y = \n    return (\n\ndef g():\n    pass\n"
    places = text.index("\n    return"), text.index("\n\ndef g")
    regions = tuple(Region(place, place, max_tokens=8) for place in places)
    result = engine.fill(InfillRequest(text, regions, path="a.py", candidates=candidates, options=DecodeOptions()))
    python = language_for("a.py")
    assert python is not None
    assert parses(result.text.encode(), python) if result.status == "ok" else result.text == text
    assert result.status in ("ok", "no_valid_fill")
    assert result.stats.nfe > 0


def test_the_command_line_takes_a_folder(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = \ny = 1\n")
    command = ["complete", str(file), "--at", "1:4", "--model", str(folder), "--max-tokens", "4", "--json"]
    done = CliRunner().invoke(cli.LACUNA.app(), [*command, "--no-workspace", "--no-syntax"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["status"] == "ok"
