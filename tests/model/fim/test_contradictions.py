"""Files whose tensors contradict their config, or whose sizes nothing supports: one line, and no tensor reaches C."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from safetensors.torch import load_file, save_file
from tests.model import checkpoints, gguf_files
from tests.model.fim import tiny_fim

from lacuna_model.core.errors import WeightsError
from lacuna_model.fim.loading import load_fim

pytestmark = pytest.mark.usefixtures("cache")

# A shape whose layers run in C.
CONFIG = replace(
    tiny_fim.CONFIG, num_layers=2, hidden_size=64, intermediate_size=96, num_heads=2, num_kv_heads=1, head_dim=32
)
SHORT, LONG = torch.ones(32), torch.ones(128)
# What config.json says, and tensors by our names that are not of the usual shape.
FOLDERS: dict[str, tuple[dict[str, Any], dict[str, torch.Tensor]]] = {
    "more heads than weights": ({"num_attention_heads": 64, "head_dim": 32}, {}),
    "wide down projection": ({}, {"layers.1.down_proj": torch.ones(64, 128)}),
    "narrow up projection": ({}, {"layers.0.up_proj": torch.ones(64, 64)}),
    "short norm": ({}, {"layers.0.attn_norm": SHORT}),
    "short bias": ({}, {"layers.0.q_proj.bias": SHORT}),
    "bias where the config has none": ({}, {"layers.0.down_proj.bias": SHORT}),
    "short embedding": ({}, {"embedding": torch.ones(100, 64)}),
    "flat weight": ({}, {"layers.0.q_proj": torch.ones(64 * 64)}),
    "short norm of queries": ({}, {"layers.0.q_norm": torch.ones(16), "layers.0.k_norm": torch.ones(16)}),
    "no heads": ({"num_attention_heads": 0}, {}),
    "heads that keys do not divide": ({"num_key_value_heads": 3}, {}),
    "wide heads": ({"head_dim": 262_144}, {}),
    "more tokens than memory": ({"vocab_size": 2**40}, {}),
    "fewer tokens than the tokenizer": ({"vocab_size": 64}, {"embedding": torch.ones(64, 64)}),
    "no positions": ({"max_position_embeddings": 0}, {}),
    "infinite rotation": ({"rope_theta": 1e400}, {}),
    "text for a number": ({"rms_norm_eps": "small"}, {}),
    "end that is no token": ({"eos_token_id": 10**6}, {}),
}


def refused(path: Path) -> str:
    with pytest.raises(WeightsError) as caught:
        load_fim(path, "odd", threads=1)
    said = str(caught.value)
    assert "\n" not in said
    return said


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_that_contradicts_itself_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    about, changed = FOLDERS[case]
    folder = checkpoints.write_fim(tmp_path / "odd", config=CONFIG, changed=changed, **about)
    assert str(folder) in refused(folder)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tokenizer_config.json", '{"added_tokens_decoder": [1]}'),
        ("tokenizer.json", '{"added_tokens": [{"id": 3}]}'),
        ("tokenizer.json", "{" * 50_000),
        ("tokenizer.json", json.dumps({"added_tokens": [], "model": {"type": "Unigram", "vocab": [["a", 0]]}})),
        ("config.json", "[" * 50_000),
        ("config.json", '{"model_type": ["qwen2"]}'),
    ],
)
def test_a_damaged_file_of_a_folder_is_one_line(tmp_path: Path, file: str, content: str) -> None:
    folder = checkpoints.write_fim(tmp_path / "odd", add_bos_token=True)
    (folder / "tokenizer_config.json").write_text("{}")
    (folder / file).write_text(content)
    refused(folder)


GGUFS: dict[str, dict[str, Any]] = {
    "no heads": {"qwen2.attention.head_count": 0},
    "heads that keys do not divide": {"qwen2.attention.head_count_kv": 4},
    "wide heads": {"qwen2.attention.key_length": 262_144, "qwen2.attention.value_length": 262_144},
    "no layers": {"qwen2.block_count": 0},
    "many layers": {"qwen2.block_count": 2**31},
    "no positions": {"qwen2.context_length": 0},
    "infinite rotation": {"qwen2.rope.freq_base": float("inf")},
    "no number": {"qwen2.rope.freq_base": float("nan")},
    "one token": {"tokenizer.ggml.tokens": "one"},
    "numbers for tokens": {"tokenizer.ggml.tokens": [1, 2, 3]},
    "list for a way to split": {"tokenizer.ggml.pre": ["smollm"]},
}


@pytest.mark.parametrize("case", GGUFS)
def test_a_gguf_file_that_contradicts_itself_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    assert "odd.gguf" in refused(gguf_files.write_fim(tmp_path / "odd.gguf", fields=GGUFS[case]))


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: {"layers.0.attn_norm": SHORT},
        lambda tensors: {"final_norm": SHORT},
        lambda tensors: {"layers.1.qkv": tensors["layers.1.qkv"][:32].contiguous()},
        lambda tensors: {"layers.1.down.scale": tensors["layers.1.down.scale"][:32].contiguous()},
        lambda tensors: {"layers.1.qkv.bias": SHORT},
        lambda tensors: {"head": tensors["head"][:, :32].contiguous()},
    ],
)
def test_a_prepared_file_of_other_shapes_is_prepared_again(
    tmp_path: Path, cache: Path, change: Callable[[Mapping[str, torch.Tensor]], dict[str, torch.Tensor]]
) -> None:
    folder = checkpoints.write_fim(tmp_path / "good", config=CONFIG)
    load_fim(folder, "good", threads=1)
    (kept,) = (cache / "prepared").iterdir()
    whole = kept.read_bytes()
    tensors = load_file(kept)
    about = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])["__metadata__"]
    save_file(tensors | change(tensors), kept, metadata=about)
    assert load_fim(folder, "good", threads=1).config.head_dim == 32
    again = load_file(kept)
    assert {name: tensor.shape for name, tensor in again.items()} == {name: one.shape for name, one in tensors.items()}
