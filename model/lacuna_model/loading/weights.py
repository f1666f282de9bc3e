"""A GGUF file: its metadata, its vocabulary with the tokens that fill in the middle, its shape and its weights."""

import math
import re
import struct
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor

from lacuna_kernels.quantised import BLOCK, FourBitWeight
from lacuna_model.core.errors import OtherKindError, WeightsError
from lacuna_model.loading.families import Names, Weights
from lacuna_model.network.config import MAX_POSITIONS, ModelConfig
from lacuna_model.tokenizer import ENDS, SPLITS, FimTokens, Vocabulary, byte_alphabet, find_fim_tokens

# What ends a gap where no token is known that does: <|im_end|> in SmolLM2, to which text never encodes.
EOG_ID = 2
# The metadata field of a model that answers chats.
CHAT_TEMPLATE = "tokenizer.chat_template"
# Types of tokens that are not text (gguf-py, ``TokenType``).
NO_TEXT = (gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED, gguf.TokenType.UNUSED)
# The metadata fields that name the parts of a fill-in-the-middle prompt, newest first.
FIM_KEYS = {
    "prefix": ("fim_pre_token_id", "prefix_token_id"),
    "suffix": ("fim_suf_token_id", "suffix_token_id"),
    "middle": ("fim_mid_token_id", "middle_token_id"),
    "pad": ("fim_pad_token_id",),
    "repo": ("fim_rep_token_id",),
    "file_sep": ("fim_sep_token_id",),
}
# GGUF's names for tensors. Linears are stored [out, in] like torch's.
# What stands around a tensor's name in a layer.
_PLACE = re.compile(r"^blk\.\d+\.|\.(?:weight|bias)$")
NAMES = Names(
    "blk",
    {
        "attn_norm": "attn_norm",
        "mlp_norm": "ffn_norm",
        "q_norm": "attn_q_norm",
        "k_norm": "attn_k_norm",
        "q_proj": "attn_q",
        "k_proj": "attn_k",
        "v_proj": "attn_v",
        "o_proj": "attn_output",
        "gate_proj": "ffn_gate",
        "up_proj": "ffn_up",
        "down_proj": "ffn_down",
    },
    {"embedding": "token_embd", "final_norm": "output_norm", "head": "output"},
)
# Supported architectures, all of this shape; llama's rows of queries and keys are in another order.
ARCHITECTURES = ("llama", "qwen2", "qwen3")
QUANTISATIONS = (
    "F32", "F16", "BF16", "Q2_K", "Q3_K", "Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0",
    "IQ4_NL", "IQ4_XS",
)  # fmt: skip

_COUNT = struct.Struct("<Q")
_ARRAY = struct.Struct("<IQ")


class _GgufReader(gguf.GGUFReader):
    """The library's reader, except for lists: it makes an array of every entry, which takes 10 s for 150,000 tokens.

    The method returns the same as the one it replaces: size, parts, the values' indices among them, and types.
    """

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[Any]]:
        if raw_type != gguf.GGUFValueType.ARRAY or self.byte_order != "I":
            whole: tuple[int, list[Any], list[int], list[Any]] = super()._get_field_parts(orig_offs, raw_type)
            return whole
        kind, count = _ARRAY.unpack_from(self.data.data, orig_offs)
        start = orig_offs + _ARRAY.size
        types = [gguf.GGUFValueType.ARRAY, gguf.GGUFValueType(kind)]
        if kind == gguf.GGUFValueType.STRING:
            parts = self._strings(start, count)
            size = sum(part.nbytes for part in parts) + _COUNT.size * count
        else:
            values = self._get(start, self.gguf_scalar_to_np[types[1]], count)
            if len(values) < count:
                raise IndexError(f"a list of {count} values ends after {len(values)}")
            parts, size = [values], values.nbytes
        return _ARRAY.size + size, parts, list(range(len(parts))), types

    def _strings(self, place: int, count: int) -> list[Any]:
        data = self.data.data
        found = []
        for _ in range(count):
            (length,) = _COUNT.unpack_from(data, place)
            place += _COUNT.size
            found.append(data[place : place + length])
            place += length
        return found


class GgufReader:
    """An open GGUF file: metadata by name, and ``tensors`` by name, still quantised.

    Raises WeightsError where the file is not a GGUF file or is cut short.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._reader = _GgufReader(path)
        except OSError as error:
            raise WeightsError(f"{path} cannot be read: {error.strerror or error}") from error
        except (ValueError, LookupError, ArithmeticError, TypeError, struct.error) as error:  # it has none of its own
            raise WeightsError(f"{path} is no readable GGUF file, or is cut short ({error}); fetch it again") from error
        self.tensors = {tensor.name: tensor for tensor in self._reader.tensors}

    def optional(self, name: str) -> Any:
        """The metadata field ``name``; None where the file has none."""
        field = self._reader.get_field(name)
        try:
            return None if field is None else field.contents()
        except ValueError as error:
            raise WeightsError(f"{self.path}: the metadata field {name!r} is damaged ({error})") from error

    def field(self, name: str) -> Any:
        """The metadata field ``name``; raises WeightsError where the file has none."""
        found = self.optional(name)
        if found is None:
            raise WeightsError(f"{self.path} lacks the metadata field {name!r}")
        return found

    def texts(self, name: str) -> list[str]:
        """A metadata field that is a list of texts; raises WeightsError where it is none."""
        found = self.field(name)
        if not (isinstance(found, list) and all(isinstance(one, str) for one in found)):
            raise WeightsError(f"{self.path} has no list of texts in the metadata field {name!r}")
        return found

    def number(self, name: str, default: float | None = None) -> Any:
        """A metadata field that is one number, or ``default``; raises WeightsError where there is neither."""
        found = self.optional(name)
        found = default if found is None else found
        if not isinstance(found, int | float):
            what = "lacks" if found is None else "has no single number in"
            raise WeightsError(f"{self.path} {what} the metadata field {name!r}")
        return found

    def vocabulary(self) -> Vocabulary:
        """The tokenizer; raises WeightsError where its kind is unknown or it is damaged."""
        kind, pre = self.field("tokenizer.ggml.model"), self.optional("tokenizer.ggml.pre")
        if kind != "gpt2":
            raise OtherKindError(f"{self.path} has a {kind!r} tokenizer; only byte-level BPE ('gpt2') is supported")
        if not (isinstance(pre, str) and pre in SPLITS):
            said = "does not say how its tokenizer splits text" if pre is None else f"splits text in a way {pre!r}"
            raise OtherKindError(f"{self.path} {said}; known are {', '.join(SPLITS)}")
        tokens = self.texts("tokenizer.ggml.tokens")
        kinds = self.optional("tokenizer.ggml.token_type") or [gguf.TokenType.NORMAL] * len(tokens)
        pairs = [merge.split(" ", 1) for merge in self.texts("tokenizer.ggml.merges")]
        if not isinstance(kinds, list) or len(kinds) != len(tokens) or any(len(pair) != 2 for pair in pairs):
            raise WeightsError(f"the tokenizer of {self.path} is damaged; fetch the file again")
        spelled = byte_alphabet().keys()
        special = {i for i, token in enumerate(tokens) if kinds[i] in NO_TEXT or not spelled >= set(token)}
        return self.vocabulary_of(tokens, special, pre, pairs)

    def vocabulary_of(
        self, tokens: Sequence[str], special: Set[int], pre: str, merges: Sequence[Sequence[str]] = ()
    ) -> Vocabulary:
        """The vocabulary of ``tokens``, some of them ``special``, with the tokens for filling in the middle."""
        ids = {token: i for i, token in enumerate(tokens)}
        ends = [ids[name] for name in ENDS if ids.get(name) in special]
        fim = self._fim_tokens(ids, ends)
        last = [*ends, *self._token("eos_token_id", len(tokens)), EOG_ID][0]
        return Vocabulary(
            tokens=tuple(tokens),
            merges=tuple((left, right) for left, right in merges),
            special_ids=frozenset(special | (fim.ends if fim else set())),
            eog_id=last if fim else EOG_ID,
            pre=pre,
            fim=fim,
        )

    def _fim_tokens(self, ids: Mapping[str, int], ends: Sequence[int]) -> FimTokens | None:
        """The tokens of the fill-in-the-middle format, or those that end a chat; None where the model has neither."""
        size = len(ids)
        said = {part: [token for key in keys for token in self._token(key, size)] for part, keys in FIM_KEYS.items()}
        eos = [*self._token("eos_token_id", size), *self._token("eot_token_id", size)]
        begins = self._token("bos_token_id", size) if self.optional("tokenizer.ggml.add_bos_token") else []
        named = {part: tokens[0] for part, tokens in said.items() if tokens}
        found = find_fim_tokens(ids, named, [*ends, *eos], begins, suffix_first=True)
        if found is None and (every := [*ends, *eos]) and self.optional(CHAT_TEMPLATE) is not None:
            last = every[0]
            return FimTokens(last, last, last, frozenset(every), start=tuple(begins), fills=False)
        return found

    def _token(self, key: str, size: int) -> list[int]:
        """The token id in a metadata field; empty where there is no such field or no such token."""
        token = self.optional(f"tokenizer.ggml.{key}")
        return [token] if isinstance(token, int) and 0 <= token < size else []


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

    def config(self) -> ModelConfig:
        """The transformer's shape; raises WeightsError where it is not supported."""
        heads, hidden = self._size("attention.head_count"), self._size("embedding_length")
        head_dim = self._size("attention.key_length", hidden // max(heads, 1))
        turned = self._size("rope.dimension_count", head_dim)
        if turned != head_dim or self._size("attention.value_length", head_dim) != head_dim:
            raise WeightsError(f"{self.path} has attention of a shape that is not supported")
        return ModelConfig.of(
            self.path,
            num_layers=self._size("block_count"),
            hidden_size=hidden,
            intermediate_size=self._size("feed_forward_length"),
            num_heads=heads,
            num_kv_heads=self._size("attention.head_count_kv", heads),
            head_dim=head_dim,
            vocab_size=len(self.texts("tokenizer.ggml.tokens")),
            rope_theta=self.number(f"{self._architecture}.rope.freq_base", 10_000.0),
            rope_scale=self._rope_scale(),
            rms_norm_eps=self.number(f"{self._architecture}.attention.layer_norm_rms_epsilon"),
            max_positions=min(self._size("context_length"), MAX_POSITIONS),
            tie_embeddings="output.weight" not in self.tensors,
            attention_bias="blk.0.attn_q.bias" in self.tensors,
            qk_norm="blk.0.attn_q_norm.weight" in self.tensors,
        )

    def _size(self, name: str, default: int | None = None) -> int:
        found = self.number(f"{self._architecture}.{name}", default)
        return int(found) if math.isfinite(found) else 0

    def _rope_scale(self) -> float:
        """The divisor of positions before rotation."""
        kind = self.optional(f"{self._architecture}.rope.scaling.type") or "none"
        if kind not in ("none", "linear"):
            raise OtherKindError(f"{self.path} scales its rotary positions by {kind!r}, which is not supported")
        return float(self.number(f"{self._architecture}.rope.scaling.factor", 1.0)) if kind == "linear" else 1.0

    def state(self) -> "GgufTensors":
        """All weights in float32, under the names of :class:`lacuna_model.network.transformer.Transformer`."""
        config = self.config()
        shapes = {name: one.shape.tolist()[::-1] for name, one in self.tensors.items()}
        # An unknown tensor would change the model's outputs, so it is refused; it may stand in place of another one.
        known = {*NAMES.layer.values(), *NAMES.outside.values()}
        unread = {name for name in shapes if _PLACE.sub("", name) not in known}
        names = {} if unread else NAMES.tensors(self.path, config, shapes)
        if unread := unread or shapes.keys() - names.values():
            raise WeightsError(f"{self.path} holds the tensor {min(unread)}, which this loader does not know")
        turned = {"q_proj": config.num_heads, "k_proj": config.num_kv_heads} if self._architecture == "llama" else {}
        return GgufTensors(names, self.tensors, turned)


def other_kind(path: Path) -> str:
    """Why our own layers do not read the GGUF file at ``path``; empty where they do. Raises WeightsError."""
    try:
        file = GgufFile(path)
        file.config()
        file.vocabulary()
    except OtherKindError as error:
        return str(error)
    return ""


class GgufTensors(Weights):
    """The tensors of a file, each dequantised on access.

    ``turned`` maps projections whose rows are in llama.cpp's rotary order to the number of their heads.
    """

    def __init__(
        self, names: Mapping[str, str], tensors: Mapping[str, gguf.ReaderTensor], turned: Mapping[str, int]
    ) -> None:
        super().__init__(names)
        self._tensors = tensors
        self._turned = turned

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._tensors[self.names[name]]
        values = torch.from_numpy(np.array(gguf.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32))
        heads = self._turned_heads(name)
        return _half_rotary(values, heads) if heads else values

    def four_bit(self, name: str) -> FourBitWeight | None:
        """The weight as stored in the file, where that is 4 bit with groups of 32; else None."""
        weight, heads = four_bit(self._tensors[self.names[name]]), self._turned_heads(name)
        return weight.by_rows(lambda part: _half_rotary(part, heads)) if weight and heads else weight

    def _turned_heads(self, name: str) -> int:
        return self._turned.get(name.removesuffix(".bias").rpartition(".")[2], 0)


def _half_rotary(weight: Tensor, heads: int) -> Tensor:
    """Reorder rows from llama.cpp's interleaved rotary order to the half-split one of Hugging Face and our kernels."""
    out = len(weight)
    return weight.view(heads, out // heads // 2, 2, -1).transpose(1, 2).reshape(weight.shape).contiguous()


def four_bit(tensor: gguf.ReaderTensor) -> FourBitWeight | None:
    """A two-dimensional tensor in its stored form, or None where that is not Q4_K."""
    if tensor.tensor_type != gguf.GGMLQuantizationType.Q4_K or len(tensor.shape) != 2:
        return None
    width, out = tensor.shape.tolist()
    blocks = np.ascontiguousarray(tensor.data).reshape(out * width // BLOCK, -1)
    halves, packed, codes = np.hsplit(blocks, (4, 16))
    steps = halves.copy().view(np.float16).astype(np.float32)
    scale, minimum = gguf.quants.Q4_K.get_scale_min(packed)
    low_and_high = np.stack((codes.reshape(-1, 4, 32) & 15, codes.reshape(-1, 4, 32) >> 4), axis=2)
    parts = (low_and_high, scale, minimum, steps[:, 0], -steps[:, 1])
    return FourBitWeight(*(torch.from_numpy(np.ascontiguousarray(part)).view(out, -1) for part in parts))
