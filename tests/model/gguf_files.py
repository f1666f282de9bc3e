"""Writes the tiny model as a GGUF file, as llama.cpp's converter would."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor

from lacuna_model.loading.families import OPTIONAL
from lacuna_model.loading.weights import NAMES
from lacuna_model.network.config import ModelConfig
from lacuna_model.tokenizer import Vocabulary

from . import tiny


def interleaved(weight: Tensor, heads: int) -> Tensor:
    """Rows from the half-split rotary order to llama.cpp's (``permute`` of its convert_hf_to_gguf.py)."""
    out = len(weight)
    return weight.view(heads, 2, out // heads // 2, -1).transpose(1, 2).reshape(weight.shape).contiguous()


def write(
    path: Path,
    *,
    architecture: str = "llama",
    config: ModelConfig = tiny.CONFIG,
    vocabulary: Vocabulary = tiny.VOCABULARY,
    kinds: Mapping[int, gguf.TokenType] | None = None,
    state: Mapping[str, Tensor] | None = None,
    quantised: gguf.GGMLQuantizationType | None = None,
    four_bit: Sequence[str] = (),
    without: str = "",
    also: Mapping[str, Tensor] | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Path:
    """Writes the model to ``path``. ``fields`` adds metadata or replaces the usual values; None leaves a field out.

    Tensors with one of ``four_bit`` in their names are in Q4_K.
    """
    writer = begun(path, architecture, config, vocabulary, kinds, fields)
    for name, tensor in (tensors(architecture, config, state) | dict(also or {})).items():
        if any(part in name for part in four_bit) and tensor.ndim == 2:
            writer.add_tensor(name, q4_k(tensor), raw_dtype=gguf.GGMLQuantizationType.Q4_K)
        elif quantised is not None and tensor.ndim == 2:
            writer.add_tensor(name, _quantised(tensor, quantised), raw_dtype=quantised)
        elif name != without:
            writer.add_tensor(name, tensor.numpy())
    ended(writer)
    return path


def begun(
    path: Path,
    architecture: str,
    config: ModelConfig,
    vocabulary: Vocabulary,
    kinds: Mapping[int, gguf.TokenType] | None = None,
    fields: Mapping[str, Any] | None = None,
) -> gguf.GGUFWriter:
    """The writer of a file that has its metadata; the arguments are those of :func:`write`."""
    writer = gguf.GGUFWriter(path, architecture)
    kinds = kinds or dict.fromkeys(vocabulary.special_ids, gguf.TokenType.CONTROL)
    every = {
        f"{architecture}.block_count": config.num_layers,
        f"{architecture}.embedding_length": config.hidden_size,
        f"{architecture}.feed_forward_length": config.intermediate_size,
        f"{architecture}.attention.head_count": config.num_heads,
        f"{architecture}.attention.head_count_kv": config.num_kv_heads,
        f"{architecture}.attention.key_length": config.head_dim,
        f"{architecture}.attention.value_length": config.head_dim,
        f"{architecture}.rope.freq_base": config.rope_theta,
        f"{architecture}.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        f"{architecture}.context_length": config.max_positions,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": vocabulary.pre,
        "tokenizer.ggml.tokens": list(vocabulary.tokens),
        "tokenizer.ggml.merges": [f"{left} {right}" for left, right in vocabulary.merges],
        "tokenizer.ggml.token_type": [int(kinds.get(i, gguf.TokenType.NORMAL)) for i in range(len(vocabulary.tokens))],
        **(fields or {}),
    }
    for name, value in every.items():
        add(writer, name, value)
    return writer


def ended(writer: gguf.GGUFWriter) -> None:
    """Write the file."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def names(config: ModelConfig) -> Iterator[tuple[str, str]]:
    """Our name and GGUF's of every tensor of a model whose embedding is its head, and whose queries have biases."""
    yield "embedding", "token_embd.weight"
    yield "final_norm", "output_norm.weight"
    for index in range(config.num_layers):
        for ours, theirs in NAMES.layer.items():
            if ours not in OPTIONAL:
                yield f"layers.{index}.{ours}", f"blk.{index}.{theirs}.weight"
            if ours in ("q_proj", "k_proj", "v_proj"):
                yield f"layers.{index}.{ours}.bias", f"blk.{index}.{theirs}.bias"


def write_fim(
    path: Path,
    *,
    quantised: gguf.GGMLQuantizationType | None = None,
    fields: Mapping[str, Any] | None = None,
    vocabulary: Vocabulary | None = None,
    config: ModelConfig | None = None,
) -> Path:
    """Writes the tiny model with the shape and the special tokens of Qwen2.5-Coder."""
    from .fim import tiny_fim

    return write(
        path,
        architecture="qwen2",
        config=config or tiny_fim.CONFIG,
        vocabulary=vocabulary or tiny_fim.VOCABULARY,
        quantised=quantised,
        fields=fields,
    )


def _quantised(tensor: Tensor, kind: gguf.GGMLQuantizationType) -> np.ndarray[Any, Any]:
    try:
        return gguf.quantize(tensor.numpy(), kind)
    except (NotImplementedError, gguf.quants.QuantError):  # zeros, because the package cannot write this type
        block, size = gguf.GGML_QUANT_SIZES[kind]
        return np.zeros((len(tensor), -(-tensor.shape[1] // block) * size), dtype=np.uint8)


def q4_k(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The bytes [out, in / 256 * 144] of a weight in Q4_K, with the nearest codes within the range of each group."""
    groups = tensor.numpy().reshape(-1, 8, 32)
    low = np.minimum(groups.min(-1), 0)
    # The factor keeps every scale below 64 after the step is rounded to half precision.
    steps = np.stack([(groups.max(-1) - low).max(1) / 15, -low.min(1)], axis=1) / 63 * 1.001
    halves = steps.astype(np.float16)
    step, lift = np.maximum(halves.astype(np.float32), 1e-7).T[..., None]
    scale = np.ceil((groups.max(-1) - low) / 15 / step).clip(1, 63).astype(np.uint8)
    minimum = np.round(-low / lift).clip(0, 63).astype(np.uint8)
    codes = np.round((groups + (lift * minimum)[..., None]) / (step * scale)[..., None]).clip(0, 15).astype(np.uint8)
    packed = (
        *(scale[:, :4] | (scale[:, 4:] >> 4) << 6, minimum[:, :4] | (minimum[:, 4:] >> 4) << 6),
        *(scale[:, 4:] & 15 | minimum[:, 4:] << 4, (codes[:, ::2] | codes[:, 1::2] << 4).reshape(-1, 128)),
    )
    return np.concatenate([halves.view(np.uint8), *packed], axis=1).reshape(len(tensor), -1)


def add(writer: gguf.GGUFWriter, name: str, value: Any) -> None:
    """Write a key of the metadata; None: leave it out."""
    match value:
        case None:
            return
        case bool():
            writer.add_bool(name, value)
        case int():
            writer.add_uint32(name, value)
        case float():
            writer.add_float32(name, value)
        case str():
            writer.add_string(name, value)
        case _:
            writer.add_array(name, value)


def tensors(
    architecture: str = "llama", config: ModelConfig = tiny.CONFIG, state: Mapping[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """Every tensor under GGUF's name, in GGUF's order."""
    left = dict(state or tiny.state(config))
    named = {"token_embd.weight": left.pop("embedding"), "output_norm.weight": left.pop("final_norm")}
    if "head" in left:
        named["output.weight"] = left.pop("head")
    heads = {"q_proj": config.num_heads, "k_proj": config.num_kv_heads} if architecture == "llama" else {}
    for name, tensor in left.items():
        _, layer, part, *bias = name.split(".")
        theirs = f"blk.{layer}.{NAMES.layer[part]}.{'bias' if bias else 'weight'}"
        named[theirs] = interleaved(tensor, heads[part]) if part in heads else tensor
    return {name: tensor.to(torch.float32).contiguous() for name, tensor in named.items()}
