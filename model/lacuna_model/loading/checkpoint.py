"""Reads a model's folder in Hugging Face's format: a diffusion model, or one that fills in the middle.

A file ``lacuna.json`` in the folder states what a diffusion model's own files leave open (whether its outputs are
shifted, which token is the mask); it also overrules them. A folder of a causal kind that names no mask is taken for a
fill-in-the-middle model.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import torch
from msgspec.structs import replace
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer as BpeTokenizer
from tokenizers import models
from torch import Tensor

from lacuna_model.core.errors import ModelNotFoundError, WeightsError
from lacuna_model.loading.fim_tokens import ENDS, find_fim_tokens
from lacuna_model.loading.folder_files import TOKENIZER, added_tokens, read_json, tokenizer_settings
from lacuna_model.network.config import MOST_POSITIONS, ModelConfig
from lacuna_model.network.shapes import check_shapes
from lacuna_model.tokens.tokenizer import QWEN_SPLITS, Tokenizer, Vocabulary, byte_alphabet, pre_tokenizer

# The parts of a layer by our names, with their names in Llama, Qwen2, Qwen3 and Dream.
LAYER = {
    "attn_norm": "input_layernorm",
    "mlp_norm": "post_attention_layernorm",
    "q_norm": "self_attn.q_norm",
    "k_norm": "self_attn.k_norm",
    **{name: f"self_attn.{name}" for name in ("q_proj", "k_proj", "v_proj", "o_proj")},
    **{name: f"mlp.{name}" for name in ("gate_proj", "up_proj", "down_proj")},
}
OUTSIDE = {"embedding": "model.embed_tokens", "final_norm": "model.norm", "head": "lm_head"}
# The same with their names in LLaDA, whose code is based on OLMo's.
LLADA_LAYER = {
    "attn_norm": "attn_norm",
    "mlp_norm": "ff_norm",
    **{name: name for name in ("q_proj", "k_proj", "v_proj", "up_proj")},
    "o_proj": "attn_out",
    "gate_proj": "ff_proj",
    "down_proj": "ff_out",
}
LLADA_OUTSIDE = {
    "embedding": "model.transformer.wte",
    "final_norm": "model.transformer.ln_f",
    "head": "model.transformer.ff_out",
}
LLADA_KEYS = {
    "hidden_size": "d_model",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "intermediate_size": "mlp_hidden_size",
    "vocab_size": "embedding_size",
    "max_position_embeddings": "max_sequence_length",
    "tie_word_embeddings": "weight_tying",
}
BLOCK_SIZE = 32
SETTINGS = "lacuna.json"


@dataclass(frozen=True, slots=True)
class Family:
    """The names that one kind of checkpoint uses, and whether its outputs are shifted (None: it varies)."""

    shift: bool | None = None
    prefix: str = "model.layers"
    layer: Mapping[str, str] = field(default_factory=lambda: LAYER)
    outside: Mapping[str, str] = field(default_factory=lambda: OUTSIDE)
    keys: Mapping[str, str] = field(default_factory=dict)


# By ``model_type`` of config.json. Open-dCoder is a plain "qwen2" with shifted outputs; others of that kind are not.
FAMILIES = {
    "Dream": Family(shift=True),
    "llada": Family(False, "model.transformer.blocks", LLADA_LAYER, LLADA_OUTSIDE, LLADA_KEYS),
    "a2d-llama": Family(shift=False),
    "a2d-qwen2": Family(shift=False),
    "a2d-qwen3": Family(shift=False),
    "llama": Family(),
    "qwen2": Family(),
    "qwen3": Family(),
}


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of ``lacuna.json``: ``shift``, the ids of mask, end-of-gap and document start, slots per block."""

    shift: bool | None = None
    mask_id: int | None = None
    eog_id: int | None = None
    document_id: int | None = None
    block_size: int = BLOCK_SIZE


class Checkpoint:
    """A folder with config.json, a byte-level BPE tokenizer and weights in safetensors.

    Raises ModelNotFoundError where it holds no model, and WeightsError where the model's kind is unknown or a part is
    missing.
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / "config.json").is_file():
            raise ModelNotFoundError(f"{folder} holds no model: there is no config.json")
        self.folder = folder
        self._about: dict[str, Any] = read_json(folder / "config.json", dict[str, Any])
        settings = folder / SETTINGS
        self._settings = read_json(settings, Settings) if settings.is_file() else Settings()
        kind = self._about.get("model_type", "")
        if not (isinstance(kind, str) and kind in FAMILIES):
            raise WeightsError(f"{folder} holds a {kind!r} model; known are {', '.join(FAMILIES)}")
        self._family = FAMILIES[kind]
        self._kind = kind

    @property
    def is_causal(self) -> bool:
        """Whether the model reads left to right: no file marks it as a diffusion model."""
        said = (self._family.shift, self._settings.shift, self._settings.mask_id, self._about.get("mask_token_id"))
        return all(one is None for one in said)

    @cached_property
    def config(self) -> ModelConfig:
        """The transformer's shape, and the way in which the model is read."""
        try:
            return self._config()
        except ValueError as error:
            raise WeightsError(f"{self.folder} has a shape that is not supported: {error}") from error

    def _config(self) -> ModelConfig:
        shape = self._shape()
        if self.is_causal:
            return shape
        return replace(
            shape,
            shift=self._said("shift", self._family.shift),
            mask_id=self._said("mask_id", self._value("mask_token_id", int | None)),
            block_size=self._settings.block_size,
        )

    def _shape(self) -> ModelConfig:
        heads, hidden = self._number("num_attention_heads"), self._number("hidden_size")
        rope = self._value("rope_parameters", dict[str, Any], {})
        scaling = self._value("rope_scaling", dict[str, Any], rope)
        if scaling.get("rope_type", scaling.get("type", "default")) != "default":
            raise WeightsError(f"{self.folder} scales its rotary positions, which is not supported")
        return ModelConfig(
            num_layers=self._number("num_hidden_layers"),
            hidden_size=hidden,
            intermediate_size=self._number("intermediate_size"),
            num_heads=heads,
            num_kv_heads=self._number("num_key_value_heads", heads),
            head_dim=self._number("head_dim", hidden // max(heads, 1)),
            vocab_size=self._number("vocab_size"),
            rope_theta=self._typed("rope_theta", float, rope.get("rope_theta"))
            or self._value("rope_theta", float, 1e4),
            rms_norm_eps=self._value("rms_norm_eps", float, 1e-6),
            max_positions=min(self._number("max_position_embeddings"), MOST_POSITIONS),
            tie_embeddings=self._value("tie_word_embeddings", bool, False),
        )

    def _said(self, name: str, known: Any) -> Any:
        """The value in the settings, or else the known one; raises WeightsError where there is neither."""
        said = getattr(self._settings, name)
        if said is None and known is None:
            raise WeightsError(f"{self.folder} does not say its {name} ({self._kind}); write it into its {SETTINGS}")
        return known if said is None else said

    def _value(self, key: str, kind: Any, default: Any = None) -> Any:
        """A value of config.json, of a kind; raises WeightsError where it is of another one."""
        value = self._typed(key, kind, self._about.get(self._family.keys.get(key, key)))
        return default if value is None else value

    def _typed(self, key: str, kind: Any, value: Any) -> Any:
        try:
            return None if value is None else msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            name = self._family.keys.get(key, key)
            raise WeightsError(f"{self.folder / 'config.json'} has a wrong {name!r}: {error}") from error

    def _number(self, key: str, default: int | None = None) -> int:
        value: int | None = self._value(key, int, default)
        if value is None:
            raise WeightsError(f"{self.folder / 'config.json'} lacks {self._family.keys.get(key, key)!r}")
        return value

    def tokenizer(self) -> Tokenizer:
        """The tokenizer, without normalizers and without recognition of special tokens in text; read once."""
        return self._tokenizer

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        bpe, added = self._bpe()
        ids, alphabet = bpe.get_vocab(with_added_tokens=False), byte_alphabet()
        said = self._value("eos_token_id", int | list[int], [])
        eos = said if isinstance(said, list) else [said]
        ends = [*(added[name] for name in ENDS if name in added), *eos]
        fim = find_fim_tokens({**ids, **added}, {}, ends, self._start) if self.is_causal else None
        special = {*added.values(), *(fim.ends if fim else ())}
        plain = {i: token for token, i in ids.items() if i not in special and alphabet.keys() >= set(token)}
        if not plain:
            raise WeightsError(f"the tokenizer of {self.folder} is no byte-level BPE")
        end = next(iter(ends if fim else eos), None)
        size = self.config.vocab_size
        document = self._said("document_id", end if fim else self._value("bos_token_id", int, end))
        known = {*ids.values(), *special, *self._start, document, (eog := self._said("eog_id", end))}
        if not 0 <= min(known) <= max(known) < size:
            wrong = next(token for token in known if not 0 <= token < size)
            raise WeightsError(f"the tokenizer of {self.folder} has the token {wrong}; the model has {size} tokens")
        vocabulary = Vocabulary(
            tokens=tuple(plain.get(i, "") for i in range(size)),
            merges=(),
            special_ids=frozenset(range(size)) - plain.keys(),
            document_id=document,
            eog_id=eog,
            fim=fim,
        )
        return Tokenizer(vocabulary, bpe)

    @property
    def _start(self) -> list[int]:
        """The tokens that begin every prompt of a causal model."""
        begin = self._value("bos_token_id", int) if tokenizer_settings(self.folder).add_bos_token else None
        return [] if begin is None else [begin]

    def _bpe(self) -> tuple[BpeTokenizer, dict[str, int]]:
        """The splitter and merger of text, and the ids of the added tokens by name."""
        whole, words, merges = (self.folder / name for name in (TOKENIZER, "vocab.json", "merges.txt"))
        if not (whole.is_file() or (words.is_file() and merges.is_file())):
            raise WeightsError(f"{self.folder} has neither tokenizer.json nor vocab.json and merges.txt")
        try:
            if whole.is_file():
                # A normalizer would change the text, and added tokens would be found in it.
                plain: dict[str, Any] = {"added_tokens": [], "normalizer": None, "post_processor": None}
                data = read_json(whole, dict[str, Any]) | plain
                return BpeTokenizer.from_str(msgspec.json.encode(data).decode()), added_tokens(self.folder).added
            bpe = BpeTokenizer(models.BPE.from_file(str(words), str(merges)))
        except WeightsError:
            raise
        except Exception as error:  # the library raises a bare Exception
            raise WeightsError(f"the tokenizer of {self.folder} is not readable ({error})") from error
        bpe.pre_tokenizer = pre_tokenizer(QWEN_SPLITS)  # also for Dream, whose folder has no tokenizer.json
        return bpe, tokenizer_settings(self.folder).added

    @property
    def files(self) -> list[Path]:
        """The files that the model is read from."""
        return sorted(self.folder.glob("*.safetensors")) + sorted(self.folder.glob("*.json"))

    def state(self, device: torch.device, dtype: torch.dtype) -> "Tensors":
        """All weights under our names, each read on access."""
        names = {ours: f"{theirs}.weight" for ours, theirs in self._family.outside.items()}
        if self.config.tie_embeddings:
            del names["head"]
        found = Tensors(self.folder, device, dtype)
        for i in range(self.config.num_layers):
            for ours, theirs in self._family.layer.items():
                for suffix in ("weight", "bias"):
                    name = f"{self._family.prefix}.{i}.{theirs}.{suffix}"
                    if name in found.files:
                        names[f"layers.{i}.{ours}{'.bias' if suffix == 'bias' else ''}"] = name
                    elif suffix == "weight" and ours not in ("q_norm", "k_norm"):
                        raise WeightsError(f"{self.folder} lacks the tensor {name}")
        if missing := [name for name in names.values() if name not in found.files]:
            raise WeightsError(f"{self.folder} lacks the tensor {missing[0]}")
        check_shapes(self.folder, self.config, names, found.shapes)
        found.names = names
        return found


class Tensors(Mapping[str, Tensor]):
    """The tensors of a folder's safetensors files by the ``names`` given to them, read one by one.

    Two copies of a model that fills half of a GPU would not fit, so each is read on access.
    """

    def __init__(self, folder: Path, device: torch.device, dtype: torch.dtype) -> None:
        self.names: Mapping[str, str] = {}
        self.files: dict[str, Path] = {}
        self.shapes: dict[str, list[int]] = {}
        self._device, self._dtype = device, dtype
        for path in sorted(folder.glob("*.safetensors")):
            try:
                with safe_open(path, framework="pt") as file:
                    self.files |= dict.fromkeys(file.keys(), path)
                    self.shapes |= {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
            except (OSError, SafetensorError) as error:
                raise WeightsError(f"{path} is damaged ({error}); fetch it again") from error
        if not self.files:
            raise ModelNotFoundError(f"{folder} holds no weights: there is no .safetensors file")

    def __getitem__(self, name: str) -> Tensor:
        path = self.files[self.names[name]]
        with safe_open(path, framework="pt", device=str(self._device)) as file:
            tensor: Tensor = file.get_tensor(self.names[name])
        # norms are reduced in float32, and are small
        return tensor.to(torch.float32 if "norm" in name else self._dtype)

    def four_bit(self, name: str) -> None:
        """None: such files hold no 4-bit weights."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
