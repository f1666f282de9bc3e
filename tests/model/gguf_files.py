"""Writes the tiny model as a GGUF file, as llama.cpp's converter would."""

from pathlib import Path

import gguf
import torch
from torch import Tensor

from lacuna_model.weights import LAYER_NAMES

from . import tiny


def interleaved(weight: Tensor, heads: int) -> Tensor:
    """Rows from the half-split rotary order to llama.cpp's (``permute`` of its convert_hf_to_gguf.py)."""
    out, width = weight.shape
    return weight.view(heads, 2, out // heads // 2, width).transpose(1, 2).reshape(out, width).contiguous()


def write(path: Path, *, architecture: str = "llama", without: str = "") -> Path:
    config, vocabulary = tiny.CONFIG, tiny.VOCABULARY
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
    writer.add_token_list(list(vocabulary.tokens))
    writer.add_token_merges([f"{left} {right}" for left, right in vocabulary.merges])
    kinds = [gguf.TokenType.CONTROL if i in vocabulary.special_ids else gguf.TokenType.NORMAL
             for i in range(config.vocab_size)]  # fmt: skip
    writer.add_token_types(kinds)
    for name, tensor in tensors().items():
        if name != without:
            writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tensors() -> dict[str, Tensor]:
    state = tiny.state()
    named = {"token_embd.weight": state["embedding"], "output_norm.weight": state["final_norm"]}
    heads = {"q_proj": tiny.CONFIG.num_heads, "k_proj": tiny.CONFIG.num_kv_heads}
    for i in range(tiny.CONFIG.num_layers):
        for ours, theirs in LAYER_NAMES.items():
            tensor = state[f"layers.{i}.{ours}"]
            named[f"blk.{i}.{theirs}.weight"] = interleaved(tensor, heads[ours]) if ours in heads else tensor
    return {name: tensor.to(torch.float32) for name, tensor in named.items()}
