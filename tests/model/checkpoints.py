"""Writes folders with tiny checkpoints in the Hugging Face format of Dream, LLaDA and others."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from torch import Tensor

from lacuna_model.loading import families
from lacuna_model.network.config import ModelConfig
from lacuna_model.tokenizer import SPLITS, pre_tokenizer

from . import tiny
from .fim import tiny_fim

PLAIN = tuple(token for token in tiny.VOCABULARY.tokens if token not in tiny.SPECIALS)
END, START, MASK, OTHER = range(len(PLAIN), len(PLAIN) + 4)
SPECIALS = {"<|endoftext|>": END, "<|beginoftext|>": START, "<|mask|>": MASK, "<|other|>": OTHER}
# The token that only DreamOn's tokenizer has.
EXPAND = len(PLAIN) + 4
FIM = tuple(f"<|fim_{part}|>" for part in ("prefix", "suffix", "middle"))
# The model has more token ids than the tokenizer, as Qwen2 has.
CONFIG = msgspec.structs.replace(tiny.CONFIG, vocab_size=len(PLAIN) + 10, tie_embeddings=False)
KINDS: dict[str, ModelConfig] = {
    "Dream": msgspec.structs.replace(CONFIG, attention_bias=True, rope_theta=1e6, rms_norm_eps=1e-6),
    "llada": CONFIG,
    "a2d-qwen3": msgspec.structs.replace(CONFIG, qk_norm=True, tie_embeddings=True),
    "CoDA": msgspec.structs.replace(CONFIG, qk_norm=True),
    "Fast_dLLM_Qwen": msgspec.structs.replace(CONFIG, attention_bias=True),
    "sdar": msgspec.structs.replace(CONFIG, qk_norm=True),
}
# The names of the reference models of `transformers` with the same shape.
SHAPES = {"Dream": "qwen2", "llada": "llama-untied", "a2d-qwen3": "qwen3", "CoDA": "qwen3", "sdar": "qwen3"}
SHAPES["Fast_dLLM_Qwen"] = SHAPES["qwen2"] = "qwen2"
SHAPES["llama"] = "llama-untied"

FIM_CONFIG = msgspec.structs.replace(tiny_fim.CONFIG, rms_norm_eps=1e-6)


def write(
    folder: Path,
    kind: str,
    *,
    config: ModelConfig | None = None,
    changed: Mapping[str, Tensor | None] | None = None,
    more: Sequence[str] = (),
    says: Mapping[str, Any] | None = None,
    **about: Any,
) -> ModelConfig:
    """Writes a checkpoint with random weights; ``about`` goes into its config.json, ``says`` into lacuna.json.

    ``changed`` are tensors by our names in place of the usual ones, or beside them; None leaves one out. The tokenizer
    has the special tokens ``more`` as well.
    """
    config, family = config or KINDS.get(kind, FIM_CONFIG), families.FAMILIES[kind].names
    folder.mkdir(parents=True, exist_ok=True)
    values = {
        "num_hidden_layers": config.num_layers,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.max_positions,
        "tie_word_embeddings": config.tie_embeddings,
        "rope_theta": config.rope_theta,
        "rms_norm_eps": config.rms_norm_eps,
        "mask_token_id": MASK,
        "eos_token_id": END,
        "bos_token_id": START,
    }
    named = {family.keys.get(key, key): value for key, value in values.items()}
    (folder / "config.json").write_text(json.dumps({"model_type": kind} | named | about))
    tensors = {}
    for name, tensor in (tiny.state(config) | dict(changed or {})).items():
        if tensor is None:
            continue
        if name.startswith("layers."):
            _, layer, part, *bias = name.split(".")
            name = f"{family.prefix}.{layer}.{family.layer[part]}.{'bias' if bias else 'weight'}"
        else:
            name = f"{family.outside[name]}.weight"
        tensors[name] = tensor
    halves = sorted(tensors)[::2], sorted(tensors)[1::2]
    for number, half in enumerate(halves, start=1):
        save_file({name: tensors[name] for name in half}, folder / f"model-0000{number}-of-00002.safetensors")
    write_tokenizer(folder, more)
    if says is not None:
        (folder / "lacuna.json").write_text(json.dumps(says))
    return config


def name_mask(folder: Path, mask: str) -> None:
    """Lets the tokenizer's settings name its mask."""
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"mask_token": mask}))


def write_fim(folder: Path, *, without: str = "", **about: Any) -> Path:
    """Writes the tiny model with the shape of Qwen2.5-Coder; its tokenizer lacks the token ``without``."""
    names = [*tiny.SPECIALS, *tiny_fim.NAMES]
    write(folder, "qwen2", **({"mask_token_id": None, "eos_token_id": 0} | about))
    tokens = {token: id for id, token in enumerate(tiny_fim.VOCABULARY.tokens)}
    bpe = Tokenizer(models.BPE(vocab=tokens, merges=list(tiny.VOCABULARY.merges)))
    bpe.pre_tokenizer = pre_tokenizer(SPLITS[tiny.VOCABULARY.pre])
    bpe.add_special_tokens([AddedToken(name, special=True) for name in names])
    text = bpe.to_str().replace(without, "<|unused|>") if without else bpe.to_str()
    (folder / "tokenizer.json").write_text(text)
    return folder


def write_tokenizer(folder: Path, more: Sequence[str] = ()) -> None:
    """Writes tokenizer.json with GPT-2's alphabet of bytes. The ids of special tokens follow those of text tokens."""
    merges = [pair for pair in tiny.VOCABULARY.merges if "".join(pair) in PLAIN]
    bpe = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(PLAIN)}, merges=merges))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.add_special_tokens([AddedToken(token, special=True) for token in (*SPECIALS, *more)])
    bpe.save(str(folder / "tokenizer.json"))
    names = {"bos_token": "<|beginoftext|>", "eos_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
