"""The weights of a GGUF file."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import gguf
import torch
from torch import Tensor

from lacuna_kernels.quantised import FourBitWeight
from lacuna_model.core.errors import OtherKindError, WeightsError
from lacuna_model.loading.gguf_reader import GgufReader, dequantized, four_bit, read_vocabulary
from lacuna_model.network.config import MAX_POSITIONS, ModelConfig, check_shapes
from lacuna_model.tokenizer import Vocabulary

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
# Supported architectures, all of this shape; llama's rows of queries and keys are in another order.
ARCHITECTURES = ("llama", "qwen2", "qwen3")
QUANTISATIONS = (
    "F32", "F16", "BF16", "Q2_K", "Q3_K", "Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0",
    "IQ4_NL", "IQ4_XS",
)  # fmt: skip


class GgufFile(GgufReader):
    """A GGUF file opened for reading: config, vocabulary and dequantised weights.

    Raises WeightsError where it is not a GGUF file, is cut short, or holds a model that this loader does not support.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._architecture = self.field("general.architecture")
        if self._architecture not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            raise OtherKindError(
                f"{path} holds a {self._architecture!r} model; this loader reads GGUF files of {known}"
            )
        for tensor in self.tensors.values():
            if tensor.tensor_type.name not in QUANTISATIONS:
                raise OtherKindError(f"{path} is quantised as {tensor.tensor_type.name}, which is not supported")
        if self.optional("split.count") not in (None, 0, 1):
            raise WeightsError(f"{path} is one of several parts of a model; join them with llama-gguf-split --merge")

    def _shape(self, name: str, default: float | None = None) -> int:
        return int(self.number(f"{self._architecture}.{name}", default))

    def config(self) -> ModelConfig:
        """The transformer's shape; raises WeightsError where it is not supported."""
        try:
            return self._config()
        except (ValueError, OverflowError) as error:
            raise WeightsError(f"{self.path} has a shape that is not supported: {error}") from error

    def _config(self) -> ModelConfig:
        heads, hidden = self._shape("attention.head_count"), self._shape("embedding_length")
        head_dim = self._shape("attention.key_length", hidden // max(heads, 1))
        turned = self._shape("rope.dimension_count", head_dim)
        if turned != head_dim or self._shape("attention.value_length", head_dim) != head_dim:
            raise WeightsError(f"{self.path} has attention of a shape that is not supported")
        return ModelConfig(
            num_layers=self._shape("block_count"),
            hidden_size=hidden,
            intermediate_size=self._shape("feed_forward_length"),
            num_heads=heads,
            num_kv_heads=self._shape("attention.head_count_kv", heads),
            head_dim=head_dim,
            vocab_size=len(self.texts("tokenizer.ggml.tokens")),
            rope_theta=self.number(f"{self._architecture}.rope.freq_base", 10_000.0),
            rope_scale=self._rope_scale(),
            rms_norm_eps=self.number(f"{self._architecture}.attention.layer_norm_rms_epsilon"),
            max_positions=min(self._shape("context_length"), MAX_POSITIONS),
            tie_embeddings="output.weight" not in self.tensors,
            attention_bias="blk.0.attn_q.bias" in self.tensors,
            qk_norm="blk.0.attn_q_norm.weight" in self.tensors,
        )

    def _rope_scale(self) -> float:
        """The divisor of positions before rotation."""
        kind = self.optional(f"{self._architecture}.rope.scaling.type") or "none"
        if kind not in ("none", "linear"):
            raise OtherKindError(f"{self.path} scales its rotary positions by {kind!r}, which is not supported")
        return float(self.number(f"{self._architecture}.rope.scaling.factor", 1.0)) if kind == "linear" else 1.0

    def vocabulary(self) -> Vocabulary:
        """The tokenizer's vocabulary and merges; raises WeightsError where its kind is unknown."""
        return read_vocabulary(self)

    def state(self) -> "GgufTensors":
        """All weights in float32, under the names of :class:`lacuna_model.network.transformer.Transformer`."""
        config = self.config()
        names = {"embedding": "token_embd.weight", "final_norm": "output_norm.weight"}
        if not config.tie_embeddings:
            names["head"] = "output.weight"
        # The last block first: a damaged file may claim billions of them.
        for i in reversed(range(config.num_layers)):
            names |= self._block(i)
            if (norm := names[f"layers.{i}.attn_norm"]) not in self.tensors:
                raise WeightsError(f"{self.path} lacks the tensor {norm}; fetch it again")
        # An unknown tensor would change the model's outputs, so it is refused.
        if unread := self.tensors.keys() - names.values():
            raise WeightsError(f"{self.path} holds the tensor {min(unread)}, which this loader does not know")
        if missing := [theirs for theirs in names.values() if theirs not in self.tensors]:
            raise WeightsError(f"{self.path} lacks the tensor {missing[0]}; fetch it again")
        check_shapes(self.path, config, names, {name: one.shape.tolist()[::-1] for name, one in self.tensors.items()})
        turned = {"q_proj": config.num_heads, "k_proj": config.num_kv_heads} if self._architecture == "llama" else {}
        return GgufTensors({ours: self.tensors[theirs] for ours, theirs in names.items()}, turned)

    def _block(self, index: int) -> dict[str, str]:
        """GGUF's names for the tensors of a block by ours, with those optional ones that it has."""
        names = {f"layers.{index}.{ours}": f"blk.{index}.{theirs}.weight" for ours, theirs in LAYER_NAMES.items()}
        others = {f"layers.{index}.{ours}": f"blk.{index}.{theirs}.weight" for ours, theirs in OPTIONAL_NAMES.items()}
        others |= {
            f"{ours}.bias": theirs.replace(".weight", ".bias") for ours, theirs in names.items() if "proj" in ours
        }
        return names | {ours: theirs for ours, theirs in others.items() if theirs in self.tensors}


def other_kind(path: Path) -> str:
    """Why our own layers do not read the GGUF file at ``path``; empty where they do. Raises WeightsError."""
    try:
        file = GgufFile(path)
        file.config()
        file.vocabulary()
    except OtherKindError as error:
        return str(error)
    return ""


class GgufTensors(Mapping[str, Tensor]):
    """The tensors of a file by our names, each dequantised to float32 on access.

    ``turned`` maps projections whose rows are in llama.cpp's rotary order to the number of their heads.
    """

    def __init__(self, tensors: Mapping[str, gguf.ReaderTensor], turned: Mapping[str, int]) -> None:
        self._tensors = tensors
        self._turned = turned

    def __getitem__(self, name: str) -> Tensor:
        values = torch.from_numpy(dequantized(self._tensors[name]))
        heads = self._turned_heads(name)
        return _half_rotary(values, heads) if heads else values

    def four_bit(self, name: str) -> FourBitWeight | None:
        """The weight as stored in the file, where that is 4 bit with groups of 32; else None."""
        weight, heads = four_bit(self._tensors[name]), self._turned_heads(name)
        return weight.by_rows(lambda part: _half_rotary(part, heads)) if weight and heads else weight

    def _turned_heads(self, name: str) -> int:
        return self._turned.get(name.removesuffix(".bias").rpartition(".")[2], 0)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def _half_rotary(weight: Tensor, heads: int) -> Tensor:
    """Reorder rows from llama.cpp's interleaved rotary order to the half-split one of Hugging Face and our kernels."""
    out = len(weight)
    return weight.view(heads, out // heads // 2, 2, -1).transpose(1, 2).reshape(weight.shape).contiguous()
