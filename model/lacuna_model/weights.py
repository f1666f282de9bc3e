"""Reads model weights: GGUF for the base, safetensors for an adapter."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor

from lacuna_model.config import ModelConfig
from lacuna_model.errors import WeightsError
from lacuna_model.tokenizer import Vocabulary

# GGUF's names for the parts of a Llama block, by ours. Linears are stored [out, in] like torch's.
LAYER_NAMES = {
    "attn_norm": "attn_norm",
    "mlp_norm": "ffn_norm",
    "q_proj": "attn_q",
    "k_proj": "attn_k",
    "v_proj": "attn_v",
    "o_proj": "attn_output",
    "gate_proj": "ffn_gate",
    "up_proj": "ffn_up",
    "down_proj": "ffn_down",
}
DOCUMENT_ID = 0  # <|endoftext|>: what SmolLM2 saw between documents
EOG_ID = 2  # <|im_end|>: ends a message, here a gap; text never encodes to it
# Slots a pass opens at once: one reading of the canvas side serves them all, but far slots are drafted ill. With 8, 16
# and 32 a pass brought 2.1, 2.5 and 2.2 tokens (48 fills of 32 tokens, in the contexts of ``lacuna bench``).
BLOCK_SIZE = 16


class GgufFile:
    """A GGUF file opened for reading: config, vocabulary and dequantised weights."""

    def __init__(self, path: Path) -> None:
        try:
            self._reader = gguf.GGUFReader(path)
        except (ValueError, OSError, IndexError) as error:
            raise WeightsError(
                f"{path} is not a readable GGUF file ({error}); run: lacuna models pull --force"
            ) from error
        self.path = path
        architecture = self._field("general.architecture")
        if architecture != "llama":
            raise WeightsError(f"{path} holds a {architecture!r} model; this loader reads llama-shaped GGUF files")

    def _field(self, name: str) -> Any:
        field = self._reader.get_field(name)
        if field is None:
            raise WeightsError(f"{self.path} lacks the metadata field {name!r}")
        return field.contents()

    def config(self) -> ModelConfig:
        """The transformer's shape."""
        heads = self._field("llama.attention.head_count")
        hidden = self._field("llama.embedding_length")
        return ModelConfig(
            num_layers=self._field("llama.block_count"),
            hidden_size=hidden,
            intermediate_size=self._field("llama.feed_forward_length"),
            num_heads=heads,
            num_kv_heads=self._field("llama.attention.head_count_kv"),
            head_dim=hidden // heads,
            vocab_size=self._field("llama.vocab_size"),
            rope_theta=self._field("llama.rope.freq_base"),
            rms_norm_eps=self._field("llama.attention.layer_norm_rms_epsilon"),
            max_positions=self._field("llama.context_length"),
            block_size=BLOCK_SIZE,
        )

    def vocabulary(self) -> Vocabulary:
        """The tokenizer's vocabulary and merges."""
        kinds = self._field("tokenizer.ggml.token_type")
        merges = (merge.split(" ", 1) for merge in self._field("tokenizer.ggml.merges"))
        return Vocabulary(
            tokens=tuple(self._field("tokenizer.ggml.tokens")),
            merges=tuple((left, right) for left, right in merges),
            special_ids=frozenset(i for i, kind in enumerate(kinds) if kind == gguf.TokenType.CONTROL),
            document_id=DOCUMENT_ID,
            eog_id=EOG_ID,
        )

    def state(self) -> dict[str, Tensor]:
        """All weights in float32, under the names of :class:`lacuna_model.transformer.Transformer`."""
        tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        config = self.config()
        names = {"embedding": "token_embd.weight", "final_norm": "output_norm.weight"}
        for i in range(config.num_layers):
            names |= {f"layers.{i}.{ours}": f"blk.{i}.{theirs}.weight" for ours, theirs in LAYER_NAMES.items()}
        missing = [theirs for theirs in names.values() if theirs not in tensors]
        if missing:
            raise WeightsError(f"{self.path} lacks the tensors {missing[:3]}; run: lacuna models pull --force")
        state = {ours: _dequantize(tensors[theirs]) for ours, theirs in names.items()}
        for name, heads in (("q_proj", config.num_heads), ("k_proj", config.num_kv_heads)):
            for i in range(config.num_layers):
                key = f"layers.{i}.{name}"
                state[key] = _half_rotary(state[key], heads)
        return state


def _dequantize(tensor: gguf.ReaderTensor) -> Tensor:
    array = gguf.dequantize(tensor.data, tensor.tensor_type)
    return torch.from_numpy(np.array(array, dtype=np.float32))


def _half_rotary(weight: Tensor, heads: int) -> Tensor:
    """Rows from llama.cpp's interleaved rotary order to the half-split order of Hugging Face and our kernels."""
    out, width = weight.shape
    return weight.view(heads, out // heads // 2, 2, width).transpose(1, 2).reshape(out, width).contiguous()
