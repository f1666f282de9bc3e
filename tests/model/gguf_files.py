"""Writes the tiny model as a GGUF file, as llama.cpp's converter would."""

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
import torch
from torch import Tensor

from lacuna_model.config import ModelConfig
from lacuna_model.tokenizer import Vocabulary
from lacuna_model.weights import LAYER_NAMES

from . import tiny


def interleaved(weight: Tensor, heads: int) -> Tensor:
    """Rows from the half-split rotary order to llama.cpp's (``permute`` of its convert_hf_to_gguf.py)."""
    out, width = weight.shape
    return weight.view(heads, 2, out // heads // 2, width).transpose(1, 2).reshape(out, width).contiguous()


def write(path: Path, *, architecture: str = "llama", without: str = "") -> Path:
    return _write(path, architecture, tiny.CONFIG, tiny.VOCABULARY, tensors(), without=without)


def write_fim(path: Path, *, quantised: gguf.GGMLQuantizationType | None = None) -> Path:
    """The tiny model of the shape and with the tokens of Qwen2.5-Coder; ``quantised`` is what its embedding claims."""
    from .fim import tiny_fim

    config, vocabulary = tiny_fim.CONFIG, tiny_fim.VOCABULARY
    return _write(path, "qwen2", config, vocabulary, named(tiny.state(config), config), quantised=quantised)


def _write(
    path: Path,
    architecture: str,
    config: ModelConfig,
    vocabulary: Vocabulary,
    tensors: Mapping[str, Tensor],
    *,
    without: str = "",
    quantised: gguf.GGMLQuantizationType | None = None,
) -> Path:
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config.num_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_heads)
    writer.add_head_count_kv(config.num_kv_heads)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_context_length(config.max_positions)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(vocabulary.pre)
    writer.add_token_list(list(vocabulary.tokens))
    writer.add_token_merges([f"{left} {right}" for left, right in vocabulary.merges])
    kinds = [gguf.TokenType.CONTROL if i in vocabulary.special_ids else gguf.TokenType.NORMAL
             for i in range(config.vocab_size)]  # fmt: skip
    writer.add_token_types(kinds)
    for name, tensor in tensors.items():
        if quantised is not None and tensor.ndim == 2:
            block, size = gguf.GGML_QUANT_SIZES[quantised]
            data = np.zeros((len(tensor), -(-tensor.shape[1] // block) * size), dtype=np.uint8)
            writer.add_tensor(name, data, raw_dtype=quantised)
        elif name != without:
            writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tensors() -> dict[str, Tensor]:
    heads = {"q_proj": tiny.CONFIG.num_heads, "k_proj": tiny.CONFIG.num_kv_heads}
    return named(tiny.state(), tiny.CONFIG, heads)


def named(
    state: Mapping[str, Tensor], config: ModelConfig, turned: Mapping[str, int] | None = None
) -> dict[str, Tensor]:
    """Weights under GGUF's names, the rows of the ``turned`` projections in llama.cpp's rotary order."""
    found = {"token_embd.weight": state["embedding"], "output_norm.weight": state["final_norm"]}
    for i in range(config.num_layers):
        for ours, theirs in LAYER_NAMES.items():
            tensor = state[f"layers.{i}.{ours}"]
            heads = (turned or {}).get(ours)
            found[f"blk.{i}.{theirs}.weight"] = interleaved(tensor, heads) if heads else tensor
            if (bias := state.get(f"layers.{i}.{ours}.bias")) is not None:
                found[f"blk.{i}.{theirs}.bias"] = bias
    return {name: tensor.to(torch.float32) for name, tensor in found.items()}
