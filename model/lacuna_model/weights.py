"""Reads model weights from GGUF files: shape, vocabulary and tensors, dequantised one by one."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor

from lacuna_model.config import ModelConfig
from lacuna_model.errors import WeightsError
from lacuna_model.tokenizer import PATTERNS, FimTokens, Vocabulary

# GGUF's names for the parts of a block, by ours. Linears are stored [out, in] like torch's.
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
# Norms that only some architectures have.
OPTIONAL_NAMES = {"q_norm": "attn_q_norm", "k_norm": "attn_k_norm"}
# Architectures whose blocks are of this shape; of a llama, the rows of queries and keys are in another order.
ARCHITECTURES = ("llama", "qwen2", "qwen3")
QUANTISATIONS = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0")
# Where a vocabulary names no other: <|endoftext|>, which SmolLM2 saw between documents, and <|im_end|>, which ends a
# message, here a gap; text never encodes to it.
DOCUMENT_ID = 0
EOG_ID = 2
# Slots a pass opens at once: one reading of the canvas side serves them all, but far slots are drafted ill. With 8, 16
# and 32 a pass brought 2.1, 2.5 and 2.2 tokens (48 fills of 32 tokens, in the contexts of ``lacuna bench``).
BLOCK_SIZE = 16
# More context than the engine ever gives; tables of every position are as large as this.
MOST_POSITIONS = 16_384
# What is no text: token types of llama.cpp (gguf-py, ``TokenType``).
NO_TEXT = (gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED, gguf.TokenType.UNUSED)
# The parts of a fill-in-the-middle prompt: the metadata that name them, newest first, and the vocabularies' names.
FIM_PARTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "prefix": (
        ("fim_pre_token_id", "prefix_token_id"),
        ("<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<\uff5cfim▁begin\uff5c>", "▁<PRE>", "<PRE>"),
    ),
    "suffix": (
        ("fim_suf_token_id", "suffix_token_id"),
        ("<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<\uff5cfim▁hole\uff5c>", "▁<SUF>", "<SUF>"),
    ),
    "middle": (
        ("fim_mid_token_id", "middle_token_id"),
        ("<|fim_middle|>", "<fim_middle>", "<fim-middle>", "<\uff5cfim▁end\uff5c>", "▁<MID>", "<MID>"),
    ),
    "pad": (("fim_pad_token_id",), ("<|fim_pad|>", "<fim_pad>", "<fim-pad>")),
    "repo": (("fim_rep_token_id",), ("<|repo_name|>", "<repo_name>", "<reponame>")),
    "file_sep": (("fim_sep_token_id",), ("<|file_sep|>", "<file_sep>")),
}
# What else ends a fill.
ENDS = ("<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<\uff5cend▁of▁sentence\uff5c>", "<EOT>", "</s>")


class GgufFile:
    """A GGUF file opened for reading: config, vocabulary and dequantised weights.

    Raises WeightsError where it is none, is cut short, or holds what this loader does not read.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._reader = gguf.GGUFReader(path)
        except (ValueError, OSError, IndexError, KeyError) as error:
            raise WeightsError(
                f"{path} is not a readable GGUF file ({error}); run: lacuna models pull --force"
            ) from error
        self.path = path
        self._architecture = architecture = self._field("general.architecture")
        if architecture not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            raise WeightsError(f"{path} holds a {architecture!r} model; this loader reads GGUF files of {known}")
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        for tensor in self._reader.tensors:
            if tensor.tensor_type.name not in QUANTISATIONS:
                raise WeightsError(f"{path} is quantised as {tensor.tensor_type.name}, which is not supported")

    def _field(self, name: str) -> Any:
        found = self._optional(name)
        if found is None:
            raise WeightsError(f"{self.path} lacks the metadata field {name!r}")
        return found

    def _optional(self, name: str) -> Any:
        field = self._reader.get_field(name)
        return None if field is None else field.contents()

    def _shape(self, name: str) -> Any:
        return self._field(f"{self._architecture}.{name}")

    def config(self) -> ModelConfig:
        """The transformer's shape."""
        heads, hidden = self._shape("attention.head_count"), self._shape("embedding_length")
        return ModelConfig(
            num_layers=self._shape("block_count"),
            hidden_size=hidden,
            intermediate_size=self._shape("feed_forward_length"),
            num_heads=heads,
            num_kv_heads=self._shape("attention.head_count_kv"),
            head_dim=self._optional(f"{self._architecture}.attention.key_length") or hidden // heads,
            vocab_size=len(self._field("tokenizer.ggml.tokens")),
            rope_theta=self._optional(f"{self._architecture}.rope.freq_base") or 10_000.0,
            rms_norm_eps=self._shape("attention.layer_norm_rms_epsilon"),
            max_positions=min(self._shape("context_length"), MOST_POSITIONS),
            tie_embeddings="output.weight" not in self._tensors,
            block_size=BLOCK_SIZE,
        )

    def vocabulary(self) -> Vocabulary:
        """The tokenizer's vocabulary and merges; raises WeightsError where it is of a kind that is not known."""
        kind, pre = self._field("tokenizer.ggml.model"), self._optional("tokenizer.ggml.pre") or "smollm"
        if kind != "gpt2" or pre not in PATTERNS:
            raise WeightsError(f"{self.path} has a tokenizer of a kind that is not supported ({kind}, {pre})")
        tokens: list[str] = self._field("tokenizer.ggml.tokens")
        ids = {token: i for i, token in enumerate(tokens)}
        kinds = self._field("tokenizer.ggml.token_type")
        merges = (merge.split(" ", 1) for merge in self._field("tokenizer.ggml.merges"))
        fim = self._fim(ids)
        document = next((ids[name] for name in ENDS if name in ids), DOCUMENT_ID)
        return Vocabulary(
            tokens=tuple(tokens),
            merges=tuple((left, right) for left, right in merges),
            special_ids=frozenset(i for i, kind in enumerate(kinds) if kind in NO_TEXT) | (fim.ends if fim else set()),
            document_id=document if fim else DOCUMENT_ID,
            eog_id=document if fim else EOG_ID,
            pre=pre,
            fim=fim,
        )

    def _fim(self, ids: Mapping[str, int]) -> FimTokens | None:
        """The tokens of the fill-in-the-middle format; None where the model has none."""
        found: dict[str, int] = {}
        for part, (keys, names) in FIM_PARTS.items():
            said = [self._optional(f"tokenizer.ggml.{key}") for key in keys]
            ways = [*said, *(ids.get(name) for name in names)]
            if (token := next((way for way in ways if way is not None), None)) is not None:
                found[part] = int(token)
        if not {"prefix", "suffix", "middle"} <= found.keys():
            return None
        ends = {ids[name] for name in ENDS if name in ids} | set(found.values())
        if (eos := self._optional("tokenizer.ggml.eos_token_id")) is not None:
            ends.add(int(eos))
        found.pop("pad", None)
        return FimTokens(**found, ends=frozenset(ends))

    def state(self) -> "GgufTensors":
        """All weights in float32, under the names of :class:`lacuna_model.transformer.Transformer`."""
        config = self.config()
        names = {"embedding": "token_embd.weight", "final_norm": "output_norm.weight"}
        if not config.tie_embeddings:
            names["head"] = "output.weight"
        for i in range(config.num_layers):
            block = {f"layers.{i}.{ours}": f"blk.{i}.{theirs}.weight" for ours, theirs in LAYER_NAMES.items()}
            block |= {f"{ours}.bias": theirs.replace(".weight", ".bias") for ours, theirs in block.items()}
            block |= {f"layers.{i}.{ours}": f"blk.{i}.{theirs}.weight" for ours, theirs in OPTIONAL_NAMES.items()}
            names |= {
                ours: theirs
                for ours, theirs in block.items()
                if theirs in self._tensors or not ours.endswith((".bias", *OPTIONAL_NAMES))
            }
        if missing := [theirs for theirs in names.values() if theirs not in self._tensors]:
            raise WeightsError(f"{self.path} lacks the tensors {missing[:3]}; run: lacuna models pull --force")
        turned = {"q_proj": config.num_heads, "k_proj": config.num_kv_heads}
        return GgufTensors({ours: self._tensors[theirs] for ours, theirs in names.items()}, self._turned(turned))

    def _turned(self, heads: Mapping[str, int]) -> Mapping[str, int]:
        return heads if self._architecture == "llama" else {}


class GgufTensors(Mapping[str, Tensor]):
    """The tensors of a file by our names, each dequantised to float32 when it is asked for.

    ``turned`` names projections whose rows are in llama.cpp's rotary order, with the number of their heads.
    """

    def __init__(self, tensors: Mapping[str, gguf.ReaderTensor], turned: Mapping[str, int]) -> None:
        self._tensors = tensors
        self._turned = turned

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._tensors[name]
        array = gguf.dequantize(tensor.data, tensor.tensor_type)
        values = torch.from_numpy(np.array(array, dtype=np.float32))
        heads = self._turned.get(name.removesuffix(".bias").rpartition(".")[2])
        return _half_rotary(values, heads) if heads else values

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def _half_rotary(weight: Tensor, heads: int) -> Tensor:
    """Rows from llama.cpp's interleaved rotary order to the half-split order of Hugging Face and our kernels."""
    out = len(weight)
    return weight.view(heads, out // heads // 2, 2, -1).transpose(1, 2).reshape(weight.shape).contiguous()
