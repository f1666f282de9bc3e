"""How a checkpoint is read, from what its files say; what they leave open is refused in one line."""

from pathlib import Path
from typing import Any

import pytest
from tests.model import checkpoints, gguf_files

from lacuna_model.core.errors import WeightsError
from lacuna_model.core.params import FollowChanges, InfillRequest, PastChange, Region
from lacuna_model.engine import Engine
from lacuna_model.loading.checkpoint import Checkpoint
from lacuna_model.loading.families import Diffusion, EditFormat, edit_format


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("sweep-next-edit-0.5b.q8_0.gguf", "sweep"),
        ("zed-industries_zeta-2.1-Q4_K_M.gguf", "zeta"),
        ("zeta-2.gguf", None),  # its prompt is another one
        ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", None),
    ],
)
def test_a_model_for_next_edits_is_known_by_its_name(name: str, known: EditFormat | None) -> None:
    assert edit_format(Path(name)) == known


def test_an_engine_with_such_a_model_rewrites_in_its_format(tmp_path: Path) -> None:
    file = gguf_files.write_fim(tmp_path / "sweep-next-edit.gguf")
    engine = Engine.load(str(file), threads=1)
    assert engine.follows_edits
    asked = InfillRequest(
        "a = 1\nb = 2\n",
        (Region(6, 12, max_tokens=20),),
        path="a.py",
        task=FollowChanges((PastChange("a.py", "a = 0", "a = 1"),)),
    )
    result = engine.fill(asked)
    assert result.status in ("ok", "no_valid_fill")
    assert result.stats.nfe > 0


EXPAND, OTHER = "<|expand|>", checkpoints.EXPAND


def described(folder: Path, kind: str, **more: Any) -> Diffusion:
    checkpoints.write(folder, kind, **more)
    checkpoint = Checkpoint(folder)
    assert not checkpoint.is_causal
    return checkpoint.diffusion


@pytest.mark.parametrize(
    ("kind", "shift", "block", "length", "rule"),
    [
        ("Dream", True, 0, "search", "entropy"),
        ("llada", False, 0, "search", "confidence"),
        ("CoDA", True, 0, "search", "entropy"),
        ("Fast_dLLM_Qwen", True, 32, "end", "confidence"),
        ("sdar", False, 4, "end", "confidence"),
    ],
)
def test_each_family_is_known(tmp_path: Path, kind: str, shift: bool, block: int, length: str, rule: str) -> None:
    how = described(tmp_path, kind)
    assert (how.shift, how.block_size, how.length, how.rule) == (shift, block, length, rule)
    assert (how.mask_id, how.begin_id, how.end_id) == (checkpoints.MASK, None, None)
    assert how.ends[0] == checkpoints.END


def test_an_expand_token_makes_dream_on(tmp_path: Path) -> None:
    how = described(tmp_path, "Dream", more=[EXPAND])
    assert (how.length, how.start, how.rule) == ("expand", 64, "entropy")
    assert (how.expand_id, how.delete_id, how.begin_id, how.end_id) == (
        checkpoints.EXPAND,
        checkpoints.END,
        checkpoints.START,
        checkpoints.END,
    )
    assert described(tmp_path / "b", "Dream", expand_token_id=OTHER).expand_id == OTHER


@pytest.mark.parametrize(("name", "block", "length"), [("x-bd3lm-v0.1", 32, "end"), ("x-mdlm-v0.1", 0, "search")])
def test_the_name_tells_the_kinds_of_a2d_apart(tmp_path: Path, name: str, block: int, length: str) -> None:
    how = described(tmp_path / name, "a2d-qwen3")
    assert (how.shift, how.block_size, how.length) == (False, block, length)
    how = described(tmp_path / "other", "a2d-qwen3", _name_or_path=f"models/{name}")
    assert how.block_size == block


def test_the_mask_may_be_named_by_the_tokenizer_alone(tmp_path: Path) -> None:
    checkpoints.write(tmp_path, "a2d-qwen3", more=["<|mdm_mask|>"], says={"block_size": 0}, mask_token_id=None)
    checkpoints.name_mask(tmp_path, "<|mdm_mask|>")
    assert Checkpoint(tmp_path).diffusion.mask_id == checkpoints.EXPAND


def test_open_dcoder_is_known_by_its_mask(tmp_path: Path) -> None:
    checkpoints.write(tmp_path, "qwen2", config=checkpoints.KINDS["Dream"], more=["<M>"], mask_token_id=None)
    checkpoints.name_mask(tmp_path, "<M>")
    how = Checkpoint(tmp_path).diffusion
    assert (how.shift, how.block_size, how.rule, how.mask_id) == (True, 0, "p2", checkpoints.EXPAND)


def test_stable_diffcoder_is_known_by_its_vocabulary_and_code(tmp_path: Path) -> None:
    code = {"AutoModelForCausalLM": "modeling.Model"}
    checkpoints.write(
        tmp_path, "llama", config=checkpoints.CONFIG, mask_token_id=None, vocab_size=155_136, auto_map=code
    )
    checkpoint = Checkpoint(tmp_path)
    how = checkpoint.diffusion
    assert (how.shift, how.block_size, how.mask_id, how.length) == (False, 4, 5, "end")


def test_lacuna_json_overrules_and_supplies(tmp_path: Path) -> None:
    says = {"shift": True, "mask_id": 7, "block_size": 0, "rule": "p2", "refresh": 1, "start": 3, "expand_id": 9}
    how = described(tmp_path, "llama", config=checkpoints.CONFIG, says=says, mask_token_id=None)
    assert {name: getattr(how, name) for name in says} == says


@pytest.mark.parametrize(
    ("kind", "more", "match"),
    [
        ("llama", {}, r"does not say its shift \(llama\); write it into its lacuna\.json, or \"causal\": true"),
        ("qwen2", {"mask_token_id": None, "auto_map": {"AutoModel": "m.M"}}, "does not say its shift"),
        ("a2d-qwen3", {}, r"does not say its block_size \(a2d-qwen3\)"),
        ("llada", {"mask_token_id": None}, "names the token 126336; the model has"),
        ("llada", {"says": {"shifted": True}},
         r"lacuna\.json has a wrong value: Object contains unknown field `shifted`"),
        ("llada", {"says": {"shift": 3}}, r"lacuna\.json has a wrong value: Expected `bool`"),
        ("Dream", {"model_type": "llada2_moe"}, "another engine serves: see model/docs/models.md"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_rightly_is_refused(tmp_path: Path, kind: str, more: dict[str, Any], match: str) -> None:
    checkpoints.write(tmp_path, kind, config=checkpoints.KINDS.get(kind, checkpoints.CONFIG), **more)
    with pytest.raises(WeightsError, match=match) as refused:
        _ = Checkpoint(tmp_path).diffusion
    assert "\n" not in str(refused.value)
