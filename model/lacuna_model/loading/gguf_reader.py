"""Reads a GGUF file: its metadata, its vocabulary, and the tokens that fill in the middle."""

import struct
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from lacuna_kernels.quantised import BLOCK, FourBitWeight
from lacuna_model.core.errors import OtherKindError, WeightsError
from lacuna_model.tokenizer import SPLITS, FimTokens, Vocabulary, byte_alphabet

# The parts of a prompt, each with its names (the same as in llama.cpp's ``llama-vocab.cpp``).
PARTS: Mapping[str, tuple[str, ...]] = {
    "prefix": ("<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<\uff5cfim▁begin\uff5c>", "▁<PRE>", "<PRE>"),
    "suffix": ("<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<\uff5cfim▁hole\uff5c>", "▁<SUF>", "<SUF>"),
    "middle": ("<|fim_middle|>", "<fim_middle>", "<fim-middle>", "<\uff5cfim▁end\uff5c>", "▁<MID>", "<MID>"),
    "pad": ("<|fim_pad|>", "<fim_pad>", "<fim-pad>"),
    "repo": ("<|repo_name|>", "<|fim_repo|>", "<fim-repo>", "<repo_name>", "<reponame>"),
    "file_sep": ("<|file_sep|>", "<file_sep>"),
}
# Formats whose prompt has the suffix first: Seed-Coder's, and Codestral's, whose fill follows the prefix at once.
SUFFIX_FIRST: Sequence[Mapping[str, str]] = (
    {part: f"<[fim-{part}]>" for part in ("prefix", "suffix", "middle")},
    {"prefix": "[PREFIX]", "suffix": "[SUFFIX]", "middle": "[PREFIX]"},
)
# Other tokens that end a fill, the end of a document first.
ENDS = (
    "<|endoftext|>", "<|end_of_text|>", "<\uff5cend▁of▁sentence\uff5c>", "<EOT>", "▁<EOT>", "</s>",
    "<|im_end|>", "<|eot_id|>", "<|EOT|>", "<|end|>",
)  # fmt: skip


def find_fim_tokens(
    ids: Mapping[str, int],
    given: Mapping[str, int],
    ends: Sequence[int],
    start: Sequence[int] = (),
    *,
    suffix_first: bool = False,
) -> FimTokens | None:
    """The tokens of the format; None where the model has none.

    ``ids`` maps the names of all tokens to their ids, ``given`` maps parts to the ids that the model's files give.
    ``ends`` are tokens that end a text, and ``start`` those that begin one. A format with the ``suffix_first`` is found
    only where it is asked for.
    """
    ways = {part: [ids[name] for name in names if name in ids] for part, names in PARTS.items()}
    found = {part: tokens[0] for part, tokens in ways.items() if tokens} | dict(given)
    turned = False
    for names in SUFFIX_FIRST if suffix_first else ():
        parts = {part: ids[name] for part, name in names.items() if name in ids}
        if len(parts) == len(names) and given.get("prefix", parts["prefix"]) == parts["prefix"]:
            turned, found = True, {**found, **parts, **given}
            break
    if not {"prefix", "suffix", "middle"} <= found.keys():
        return None
    every = frozenset({*ends, *found.values()})
    found.pop("pad", None)
    return FimTokens(**found, ends=every, start=tuple(start), suffix_first=turned, fills=True)


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


def dequantized(tensor: gguf.ReaderTensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The values of a tensor in float32, as a copy."""
    return np.array(gguf.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)


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


# The defaults: <|endoftext|>, which SmolLM2 saw between documents, and <|im_end|>, which ends a message and here a gap.
# Text never encodes to it.
DOCUMENT_ID = 0
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


def read_vocabulary(file: GgufReader) -> Vocabulary:
    """The tokenizer of a file; raises WeightsError where its kind is unknown or it is damaged."""
    kind, pre = file.field("tokenizer.ggml.model"), file.optional("tokenizer.ggml.pre")
    if kind != "gpt2":
        raise OtherKindError(f"{file.path} has a {kind!r} tokenizer; only byte-level BPE ('gpt2') is supported")
    if not (isinstance(pre, str) and pre in SPLITS):
        said = "does not say how its tokenizer splits text" if pre is None else f"splits text in a way {pre!r}"
        raise OtherKindError(f"{file.path} {said}; known are {', '.join(SPLITS)}")
    tokens = file.texts("tokenizer.ggml.tokens")
    kinds = file.optional("tokenizer.ggml.token_type") or [gguf.TokenType.NORMAL] * len(tokens)
    pairs = [merge.split(" ", 1) for merge in file.texts("tokenizer.ggml.merges")]
    if not isinstance(kinds, list) or len(kinds) != len(tokens) or any(len(pair) != 2 for pair in pairs):
        raise WeightsError(f"the tokenizer of {file.path} is damaged; fetch the file again")
    spelled = byte_alphabet().keys()
    special = {i for i, token in enumerate(tokens) if kinds[i] in NO_TEXT or not spelled >= set(token)}
    return vocabulary_of(file, tokens, special, pre, pairs)


def vocabulary_of(
    file: GgufReader, tokens: Sequence[str], special: Set[int], pre: str, merges: Sequence[Sequence[str]] = ()
) -> Vocabulary:
    """The vocabulary of ``tokens``, of which some are ``special``, with the fill-in-the-middle tokens of the file."""
    ids = {token: i for i, token in enumerate(tokens)}
    ends = [ids[name] for name in ENDS if ids.get(name) in special]
    fim = _fim_tokens(file, ids, ends)
    last = [*ends, *_token(file, "eos_token_id", len(tokens)), EOG_ID][0]
    return Vocabulary(
        tokens=tuple(tokens),
        merges=tuple((left, right) for left, right in merges),
        special_ids=frozenset(special | (fim.ends if fim else set())),
        document_id=last if fim else DOCUMENT_ID,
        eog_id=last if fim else EOG_ID,
        pre=pre,
        fim=fim,
    )


def _fim_tokens(file: GgufReader, ids: Mapping[str, int], ends: Sequence[int]) -> FimTokens | None:
    """The tokens of the fill-in-the-middle format, or those that end a chat; None where the model has neither."""
    said = {part: [token for key in keys for token in _token(file, key, len(ids))] for part, keys in FIM_KEYS.items()}
    eos = [*_token(file, "eos_token_id", len(ids)), *_token(file, "eot_token_id", len(ids))]
    begins = _token(file, "bos_token_id", len(ids)) if file.optional("tokenizer.ggml.add_bos_token") else []
    named = {part: tokens[0] for part, tokens in said.items() if tokens}
    found = find_fim_tokens(ids, named, [*ends, *eos], begins, suffix_first=True)
    if found is None and (every := [*ends, *eos]) and file.optional(CHAT_TEMPLATE) is not None:
        last = every[0]
        return FimTokens(last, last, last, frozenset(every), start=tuple(begins), fills=False)
    return found


def _token(file: GgufReader, key: str, size: int) -> list[int]:
    """The token id in a metadata field; empty where there is no such field or no such token."""
    token = file.optional(f"tokenizer.ggml.{key}")
    return [token] if isinstance(token, int) and 0 <= token < size else []
