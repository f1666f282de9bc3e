"""On random weights, every family goes the way of its published rule: same lengths, same slots in the same order."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.model import checkpoints, tiny
from tests.model.diffusion import oracles
from tests.model.network.test_transformer import reference_model
from torch import Tensor

from lacuna_model.core.constraint import Constraint
from lacuna_model.core.context import lay_out
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions, InfillRequest
from lacuna_model.decode.denoise import denoise
from lacuna_model.decode.fill import Fill
from lacuna_model.diffusion.reading import LoadedDiffusion
from lacuna_model.readers import NoCache, load_checkpoint, opening, reader

BEFORE, AFTER = "def f(x):\n    y = ", "\n    return y\n"
MOST = 12
EXACT = {"refresh": 1}  # every pass reads the whole text


def trajectory(model: LoadedDiffusion, **options: Any) -> tuple[list[list[int | None]], list[int], int]:
    """What the gap looked like after every pass, the tokens in the end, and the passes."""
    asked = DecodeOptions(**options)
    request = InfillRequest("", (), path="a.py")
    layout = lay_out((BEFORE, AFTER), model.tokenizer, opening(model, request), heals=False)
    reads: Any = reader(model, NoCache(), layout, [], asked)
    fill = Fill(layout.gaps[0], MOST)
    seen: list[list[int | None]] = []
    read = reads.read

    def watched(asked: Sequence[Fill]) -> Any:
        found = read(asked)
        seen.append(reads.slots(asked[0]).tokens)
        return found

    reads.read = watched
    tokens = model.tokenizer
    for _ in denoise(reads, [fill], [Constraint(tokens)], tokens, deadline=None):
        pass
    return seen, fill.tokens, reads.passes


def gap_of(kind: str, model: LoadedDiffusion, changed: dict[str, Tensor] | None = None) -> oracles.Gap:
    """The same gap, read by the model of `transformers` with the same weights."""
    config = checkpoints.KINDS["Dream" if kind == "qwen2" else kind]
    state = changed or tiny.state(config)
    reference = reference_model(checkpoints.SHAPES[kind], config, state)

    def predict(ids: Sequence[int]) -> Tensor:
        everything = torch.zeros((1, 1, len(ids), len(ids)))
        with torch.inference_mode():
            logits = reference(torch.tensor([list(ids)]), attention_mask=everything).logits[0].float()
        return torch.cat([logits[:1], logits[:-1]]) if model.how.shift else logits

    encode, how = model.tokenizer.encode, model.how
    before = [*([] if how.begin_id is None else [how.begin_id]), *encode(BEFORE)]
    after = [*encode(AFTER), *([] if how.end_id is None else [how.end_id])]
    text = sorted(set(range(model.config.vocab_size)) - model.tokenizer.special_ids)
    return oracles.Gap(predict, before, after, how.mask_id, text)


@pytest.mark.parametrize("seed", range(3))
def test_dream_on_expands_and_deletes(tmp_path: Path, seed: int) -> None:
    config = checkpoints.KINDS["Dream"]
    state = tiny.state(config, seed)
    # So that both tokens are written now and then.
    head = state["head"].clone()
    head[checkpoints.EXPAND] *= 2.5
    head[checkpoints.END] *= 2.5
    state["head"] = head
    checkpoints.write(tmp_path, "Dream", changed=state, more=["<|expand|>"], says=EXACT | {"start": 4})
    model = load_checkpoint(tmp_path, precision="float32", device="cpu")
    how = model.how
    assert (how.length, how.expand_id, how.delete_id) == ("expand", checkpoints.EXPAND, checkpoints.END)
    assert (how.begin_id, how.end_id) == (checkpoints.START, checkpoints.END)
    gap = gap_of("Dream", model, state)
    expected = oracles.dream_on(gap, 4, MOST, checkpoints.EXPAND, checkpoints.END)
    seen, tokens, passes = trajectory(model)
    assert seen == expected
    assert tokens == expected[-1]
    assert passes == gap.passes


RULES = {"Dream": oracles.by_entropy, "CoDA": oracles.by_entropy, "llada": oracles.by_confidence}


@pytest.mark.parametrize("kind", [*RULES, "a2d-qwen3", "qwen2"])
def test_lengths_are_searched_and_slots_filled_as_published(tmp_path: Path, kind: str) -> None:
    says: dict[str, Any] = dict(EXACT)
    folder = tmp_path / "tiny-mdlm"
    if kind == "qwen2":  # Open-dCoder, known by its mask
        config = checkpoints.KINDS["Dream"]
        checkpoints.write(folder, kind, config=config, more=["<M>"], says=says, mask_token_id=None)
        checkpoints.name_mask(folder, "<M>")
    else:
        checkpoints.write(folder, kind, says=says)
    model = load_checkpoint(folder, precision="float32", device="cpu")
    gap = gap_of(kind, model)
    *tried, best = oracles.cal(gap, 8, MOST)
    rule = oracles.p2 if kind == "qwen2" else RULES.get(kind, oracles.by_confidence)
    expected = rule(gap, best)
    seen, tokens, passes = trajectory(model)
    assert [len(slots) for slots in seen[: len(tried)]] == [*tried[1:], best]
    assert seen[len(tried) :] == expected
    assert tokens == expected[-1]
    assert passes == gap.passes


def test_a_request_may_ask_for_another_rule(tmp_path: Path) -> None:
    checkpoints.write(tmp_path, "llada", says=EXACT | {"start": MOST, "bias": [0, 0, 0, 0, 1]})
    model = load_checkpoint(tmp_path, precision="float32", device="cpu")
    for options, rule in (
        ({"schedule": "entropy", "entropy_bound": 6.0}, lambda gap, n: oracles.within_bound(gap, n, 6.0)),
        ({"schedule": "confidence", "confidence": 0.02}, lambda gap, n: oracles.above_threshold(gap, n, 0.02)),
        ({"schedule": "single"}, oracles.by_entropy),
    ):
        seen, tokens, _ = trajectory(model, **options)
        length = len(tokens)
        expected = rule(gap_of("llada", model), length)
        assert seen[-len(expected) :] == expected
        assert len(expected) < length or options["schedule"] == "single"


def blocks_of(folder: Path, kind: str, model: LoadedDiffusion, state: dict[str, Tensor]) -> oracles.Blocks:
    """The same fill behind the same prompt, read by the model of `transformers` with a mask for blocks."""
    reference = reference_model(checkpoints.SHAPES[kind], checkpoints.KINDS[kind], state)

    def predict(ids: Sequence[int], blocks: Sequence[int]) -> Tensor:
        number = torch.tensor(list(blocks))
        mask = torch.zeros((1, 1, len(ids), len(ids))).masked_fill(number[None] > number[:, None], -torch.inf)
        with torch.inference_mode():
            return reference(torch.tensor([list(ids)]), attention_mask=mask).logits[0].float()

    encode, fim = model.tokenizer.encode, model.tokenizer.fim
    assert fim is not None
    prompt = [fim.prefix, *encode(BEFORE), fim.suffix, *encode(AFTER), fim.middle]
    if fim.suffix_first:
        prompt = [fim.suffix, *encode(AFTER), fim.prefix, *encode(BEFORE), fim.middle]
    text = sorted(set(range(model.config.vocab_size)) - model.tokenizer.special_ids | fim.ends)
    how = model.how
    return oracles.Blocks(predict, prompt, how.mask_id, text, sorted(fim.ends), how.block_size, behind=how.after_prompt)


def state_that_ends(kind: str, seed: int) -> dict[str, Tensor]:
    """Random weights that write the end token now and then."""
    state = tiny.state(checkpoints.KINDS[kind], seed)
    table = "embedding" if checkpoints.KINDS[kind].tie_embeddings else "head"
    state[table] = state[table].clone()
    state[table][checkpoints.END] *= 1.3
    return state


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["sdar", "a2d-qwen3", "Fast_dLLM_Qwen"])
def test_blocks_are_written_as_published(tmp_path: Path, kind: str, seed: int) -> None:
    folder, state = tmp_path / "tiny-bd3lm", state_that_ends(kind, seed)
    says: dict[str, Any] = {
        "sdar": {"threshold": 0.05},
        "a2d-qwen3": {"block_size": 6},
        "Fast_dLLM_Qwen": {"block_size": 8, "inner": 4, "threshold": 0.05},
    }[kind]
    checkpoints.write(folder, kind, changed=state, more=checkpoints.FIM, says=says)
    model = load_checkpoint(folder, precision="float32", device="cpu")
    text = blocks_of(folder, kind, model, state)
    how = model.how
    expected = oracles.block_by_block(text, MOST, how.threshold, how.inner or None, shifted=how.shift)
    seen, tokens, passes = trajectory(model)
    assert seen == expected
    assert tokens == expected[-1][:MOST]
    assert passes == text.passes


def test_seed_coders_prompt_has_the_suffix_first(tmp_path: Path) -> None:
    state = state_that_ends("sdar", 0)
    names = [f"<[fim-{part}]>" for part in ("prefix", "suffix", "middle")]
    checkpoints.write(tmp_path, "sdar", changed=state, more=names)
    model = load_checkpoint(tmp_path, precision="float32", device="cpu")
    expected = oracles.block_by_block(blocks_of(tmp_path, "sdar", model, state), MOST, 0.85)
    assert trajectory(model)[0] == expected


def test_a_model_in_blocks_without_a_prompt_for_gaps_refuses_them(tmp_path: Path) -> None:
    checkpoints.write(tmp_path, "sdar")
    with pytest.raises(RequestError, match="reads nothing behind a gap"):
        trajectory(load_checkpoint(tmp_path, precision="float32", device="cpu"))
