"""Reads a folder with safetensors: its config, tokenizer and weights."""

from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer as BpeTokenizer
from tokenizers import models
from torch import Tensor

from lacuna_model.core.errors import ModelNotFoundError, WeightsError
from lacuna_model.loading import families
from lacuna_model.loading.families import Diffusion, Family, Names, Weights
from lacuna_model.network.config import MAX_POSITIONS, ModelConfig
from lacuna_model.tokenizer import (
    ENDS,
    QWEN_SPLITS,
    Tokenizer,
    Vocabulary,
    byte_alphabet,
    find_fim_tokens,
    pre_tokenizer,
)

TOKENIZER = "tokenizer.json"
TOKENIZER_SETTINGS = "tokenizer_config.json"
T = TypeVar("T")


class AddedToken(msgspec.Struct, frozen=True):
    """A token beside those of the vocabulary; in ``tokenizer_config.json`` the id is its key."""

    content: str
    id: int = -1


class TokenizerSettings(msgspec.Struct, frozen=True):
    """What Lacuna reads of ``tokenizer_config.json``; the names of tokens may be in either of two forms."""

    added_tokens_decoder: dict[int, AddedToken] = {}
    add_bos_token: bool | None = None
    chat_template: Any = None
    bos_token: str | AddedToken | None = None
    eos_token: str | AddedToken | None = None
    mask_token: str | AddedToken | None = None

    @property
    def added(self) -> dict[str, int]:
        """The ids of the added tokens by name."""
        return {token.content: number for number, token in self.added_tokens_decoder.items()}

    @property
    def names(self) -> dict[str, str]:
        """The names of the special tokens ``bos``, ``eos`` and ``mask`` that it has."""
        said = {"bos": self.bos_token, "eos": self.eos_token, "mask": self.mask_token}
        return {kind: one.content if isinstance(one, AddedToken) else one for kind, one in said.items() if one}


class _Added(msgspec.Struct, frozen=True):
    """What Lacuna reads of ``tokenizer.json`` itself."""

    added_tokens: list[AddedToken] = []


def read_json(path: Path, kind: type[T], *, optional: bool = True) -> T:
    """A JSON file; an empty value if it is ``optional`` and missing.

    Raises WeightsError where it is unreadable or of another form.
    """
    if optional and not path.is_file():
        return kind()
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError(f"{path} is not readable ({error})") from error


def added_tokens(folder: Path) -> dict[str, int]:
    """The ids of the tokens added in ``tokenizer.json`` by name. Raises WeightsError as :func:`read_json`."""
    return {token.content: token.id for token in read_json(folder / TOKENIZER, _Added).added_tokens}


def tokenizer_settings(folder: Path) -> TokenizerSettings:
    """The settings of a folder's tokenizer; the defaults without the file. Raises WeightsError as :func:`read_json`."""
    return read_json(folder / TOKENIZER_SETTINGS, TokenizerSettings)


SETTINGS = "lacuna.json"
# The names of the token that DreamOn expands to two masks.
EXPAND = ("<|expand|>", "<expand>")


class Checkpoint:
    """A folder with config.json, a byte-level BPE tokenizer and weights in safetensors.

    Raises ModelNotFoundError where it holds no model, and WeightsError where the model's kind is unknown or a part is
    missing.
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / "config.json").is_file():
            raise ModelNotFoundError(f"{folder} holds no model: there is no config.json")
        self.folder = folder
        self._about: dict[str, Any] = read_json(folder / "config.json", dict[str, Any], optional=False)
        self._settings = read_json(folder / SETTINGS, dict[str, Any])
        kind = self._about.get("model_type", "")
        family = self._family_of(kind) if isinstance(kind, str) else None
        if family is None and kind in families.ELSEWHERE:
            raise WeightsError(
                f"{folder} holds a {kind!r} model, which another engine serves: see model/docs/models.md"
            )
        if family is None:
            raise WeightsError(f"{folder} holds a {kind!r} model; known are {', '.join(families.FAMILIES)}")
        self._family = family
        self._names = family.names
        self._kind = kind

    def _family_of(self, kind: str) -> Family | None:
        """The family of a model; None for a kind that is not known.

        A plain shape is a diffusion model where its files name a mask, or where it is one that is known by its
        vocabulary.
        """
        family, about = families.FAMILIES.get(kind), self._about
        if family is families.DREAM and self._expand is not None:
            return families.DREAM_ON
        if family is families.A2D:
            title = f"{self.folder.resolve().name} {about.get('_name_or_path', '')}".lower()
            return next((one for name, one in families.A2D_VARIANTS.items() if name in title), family)
        if family is None or not family.causal:
            return family
        own = about.get("auto_map")
        code = isinstance(own, dict) and any(str(name).startswith("AutoModel") for name in own)
        if kind == "llama" and about.get("vocab_size") == families.SEED_VOCABULARY and code:
            return families.STABLE_DIFFCODER
        if kind == "qwen2" and self._token_names.get("mask") == families.OPEN_DCODER_MASK:
            return families.OPEN_DCODER
        masked = bool(self._settings) or about.get("mask_token_id") is not None or self._named("mask") is not None
        return Family() if masked or code else family

    @cached_property
    def _token_names(self) -> dict[str, str]:
        """The names of the tokenizer's special tokens: ``bos``, ``eos``, ``mask``."""
        return tokenizer_settings(self.folder).names

    @cached_property
    def _added(self) -> dict[str, int]:
        """The ids of the added tokens by name, of both files that may have them."""
        return tokenizer_settings(self.folder).added | added_tokens(self.folder)

    def _named(self, token: str) -> int | None:
        """The id of one of the tokenizer's special tokens; None where it has none."""
        return self._added.get(self._token_names.get(token, ""))

    @cached_property
    def _expand(self) -> int | None:
        """The token that stands for two masks, where a file names one."""
        said = [self._settings, self._about, read_json(self.folder / "generation_config.json", dict[str, Any])]
        ids = (one.get(key) for one, key in zip(said, ("expand_id", *["expand_token_id"] * 2), strict=True))
        names = (self._added.get(name) for name in EXPAND)
        return next((found for found in (*ids, *names) if isinstance(found, int)), None)

    @property
    def is_causal(self) -> bool:
        """Whether the model reads left to right, and is no diffusion model."""
        return self._family.causal or self._settings.get("causal") is True

    @cached_property
    def diffusion(self) -> Diffusion:
        """How the model is read as a diffusion model. Raises WeightsError where a file would have to say more."""
        family, ends = self._family, self._ends
        mask, eos = self._value("mask_token_id", int, self._named("mask")), self._named("eos")
        known = {**family.how, "ends": ends} | ({} if mask is None else {"mask_id": mask})
        if size := known.get("block_size"):
            known["block_size"] = self._value("block_size", int, self._value("bd_size", int, size))
        if known.get("length") == "expand":
            known |= {"expand_id": self._expand, "delete_id": ends[0] if eos is None and ends else eos}
        if family.wrapped:
            known |= {"begin_id": self._named("bos"), "end_id": eos}
        known |= {name: value for name, value in self._settings.items() if name != "causal"}
        if unsaid := next((name for name in ("shift", "block_size", "mask_id") if known.get(name) is None), None):
            example = f'write it into its {SETTINGS}, or "causal": true if it is no diffusion model'
            raise WeightsError(f"{self.folder} does not say its {unsaid} ({self._kind}); {example}")
        try:
            found = msgspec.convert(known, Diffusion)
        except msgspec.ValidationError as error:
            raise WeightsError(f"{self.folder / SETTINGS} has a wrong value: {error}") from error
        ids = (found.mask_id, found.expand_id, found.delete_id, found.begin_id, found.end_id, *found.ends)
        size = self.config.vocab_size
        if wrong := [token for token in ids if token is not None and not 0 <= token < size]:
            raise WeightsError(f"{self.folder} names the token {wrong[0]}; the model has {size} tokens")
        return found

    @property
    def _ends(self) -> tuple[int, ...]:
        """The tokens that end a text, those that the model's own files name first."""
        said = self._value("eos_token_id", int | list[int], [])
        eos, own = said if isinstance(said, list) else [said], self._named("eos")
        named = [self._added[name] for name in ENDS if name in self._added]
        return tuple(dict.fromkeys([*([] if own is None else [own]), *eos, *named]))

    @cached_property
    def config(self) -> ModelConfig:
        """The transformer's shape."""
        heads, hidden = self._number("num_attention_heads"), self._number("hidden_size")
        rope = self._value("rope_parameters", dict[str, Any], {})
        scaling = self._value("rope_scaling", dict[str, Any], rope)
        if scaling.get("rope_type", scaling.get("type", "default")) != "default":
            raise WeightsError(f"{self.folder} scales its rotary positions, which is not supported")
        return ModelConfig.of(
            self.folder,
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
            max_positions=min(self._number("max_position_embeddings"), MAX_POSITIONS),
            tie_embeddings=self._value("tie_word_embeddings", bool, False),
        )

    def _value(self, key: str, kind: Any, default: Any = None) -> Any:
        """A value of config.json, of a kind; raises WeightsError where it is of another one."""
        value = self._typed(key, kind, self._about.get(self._names.keys.get(key, key)))
        return default if value is None else value

    def _typed(self, key: str, kind: Any, value: Any) -> Any:
        try:
            return None if value is None else msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            name = self._names.keys.get(key, key)
            raise WeightsError(f"{self.folder / 'config.json'} has a wrong {name!r}: {error}") from error

    def _number(self, key: str, default: int | None = None) -> int:
        value: int | None = self._value(key, int, default)
        if value is None:
            raise WeightsError(f"{self.folder / 'config.json'} lacks {self._names.keys.get(key, key)!r}")
        return value

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, without normalizers and without recognition of special tokens in text."""
        bpe, whole = self._bpe(), (self.folder / TOKENIZER).is_file()
        added = added_tokens(self.folder) if whole else tokenizer_settings(self.folder).added
        ids, alphabet = bpe.get_vocab(with_added_tokens=False), byte_alphabet()
        eos, size = self._value("eos_token_id", int | list[int], []), self.config.vocab_size
        ends = [*(added[name] for name in ENDS if name in added), *(eos if isinstance(eos, list) else [eos])]
        if self.is_causal:
            fim = find_fim_tokens({**ids, **added}, {}, ends, self._start)
        else:
            ends = [*self._ends, self.diffusion.mask_id]
            fim = (
                find_fim_tokens({**ids, **added}, {}, self._ends, suffix_first=True)
                if self.diffusion.block_size
                else None
            )
        special = {*added.values(), *(fim.ends if fim else ()), *ends}
        plain = {i: token for token, i in ids.items() if i not in special and alphabet.keys() >= set(token)}
        if not plain:
            raise WeightsError(f"the tokenizer of {self.folder} is no byte-level BPE")
        if not ends:
            raise WeightsError(f"{self.folder} does not say which token ends a text: config.json has no eos_token_id")
        known = {*ids.values(), *special, *self._start}
        if not 0 <= min(known) <= max(known) < size:
            wrong = next(token for token in known if not 0 <= token < size)
            raise WeightsError(f"the tokenizer of {self.folder} has the token {wrong}; the model has {size} tokens")
        vocabulary = Vocabulary(
            tokens=tuple(plain.get(i, "") for i in range(size)),
            merges=(),
            special_ids=frozenset(range(size)) - plain.keys(),
            eog_id=ends[0],
            fim=fim,
        )
        return Tokenizer(vocabulary, bpe)

    @property
    def _start(self) -> list[int]:
        """The tokens that begin every prompt of a causal model."""
        begin = self._value("bos_token_id", int) if tokenizer_settings(self.folder).add_bos_token else None
        return [] if begin is None else [begin]

    def _bpe(self) -> BpeTokenizer:
        """The splitter and merger of text."""
        whole, words, merges = (self.folder / name for name in (TOKENIZER, "vocab.json", "merges.txt"))
        if not (whole.is_file() or (words.is_file() and merges.is_file())):
            raise WeightsError(f"{self.folder} has neither tokenizer.json nor vocab.json and merges.txt")
        # A normalizer would change the text, and added tokens would be found in it.
        plain: dict[str, Any] = {"added_tokens": [], "normalizer": None, "post_processor": None}
        data = read_json(whole, dict[str, Any]) | plain
        try:
            if whole.is_file():
                bpe = BpeTokenizer.from_str(msgspec.json.encode(data).decode())
            else:
                bpe = BpeTokenizer(models.BPE.from_file(str(words), str(merges)))
        except Exception as error:  # the library raises a bare Exception
            raise WeightsError(f"the tokenizer of {self.folder} is not readable ({error})") from error
        if not whole.is_file():
            bpe.pre_tokenizer = pre_tokenizer(QWEN_SPLITS)  # also for Dream, whose folder has no tokenizer.json
        return bpe

    @property
    def files(self) -> list[Path]:
        """The files that the model is read from."""
        return sorted(self.folder.glob("*.safetensors")) + sorted(self.folder.glob("*.json"))

    def state(self) -> "Tensors":
        """All weights under our names, each read on access."""
        return Tensors(self.folder, self.config, self._names)


class Tensors(Weights):
    """The tensors of a folder's safetensors files."""

    def __init__(self, folder: Path, config: ModelConfig, names: Names) -> None:
        self._files: dict[str, Path] = {}
        shapes: dict[str, list[int]] = {}
        for path in sorted(folder.glob("*.safetensors")):
            try:
                with safe_open(path, framework="pt") as file:
                    self._files |= dict.fromkeys(file.keys(), path)
                    shapes |= {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
            except OSError as error:
                raise WeightsError(f"{path} cannot be read: {error.strerror or error}") from error
            except SafetensorError as error:
                raise WeightsError(f"{path} is damaged ({error}); fetch it again") from error
        if not shapes:
            raise ModelNotFoundError(f"{folder} holds no weights: there is no .safetensors file")
        super().__init__(names.tensors(folder, config, shapes))

    def __getitem__(self, name: str) -> Tensor:
        with safe_open(self._files[self.names[name]], framework="pt") as file:
            tensor: Tensor = file.get_tensor(self.names[name])
        return tensor.float()
