"""Loads a file that libllama reads: its vocabulary, its tokens for gaps, its model."""

import ctypes
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from weakref import finalize

from lacuna_model.core.errors import OtherKindError, WeightsError
from lacuna_model.decode.sampling import PrefixTable
from lacuna_model.fim.costs import PassCosts
from lacuna_model.fim.loading import NO_TOKENS, LoadedFim
from lacuna_model.fim.passes import ContextPieces
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.llama import library as api
from lacuna_model.llama.library import Device, Library, library, rehearse
from lacuna_model.llama.tracks import Cells, LlamaNetwork, LlamaTracks
from lacuna_model.loading.weights import GgufReader
from lacuna_model.network.config import HOST_POSITIONS, ModelConfig
from lacuna_model.network.devices import HOST, choose_threads
from lacuna_model.tokenizer import Tokenizer, Vocabulary

# Attributes of tokens that are not text (``llama_token_attr``): unknown, unused, control.
_NO_TEXT = 1 | 2 | 8
_LONGEST_PIECE = 4096
# Is put before a text, and taken away again: the space before the first word is then before this.
_FIRST = "\n"


class LlamaTokenizer(Tokenizer):
    """A tokenizer of any kind that libllama knows."""

    def __init__(self, library: Library, vocab: int, vocabulary: Vocabulary) -> None:
        self._library, self._vocab = library, vocab
        self.eog_id, self.special_ids, self.fim = vocabulary.eog_id, vocabulary.special_ids, vocabulary.fim
        self.vocab_size = len(vocabulary.tokens)
        self.vocabulary = vocabulary
        self._bytes = [b"" if i in self.special_ids else self._piece(i) for i in range(self.vocab_size)]
        names = (vocabulary.tokens[i] for i in sorted(self.special_ids))
        self._names = re.compile("|".join(re.escape(name) for name in names if len(name) > 1) or r"(?!)")

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text."""
        ids = self._split(text)
        if self.special_ids.isdisjoint(ids):
            return ids
        # Some files let the library take a special token's name in a text for the token: the name is cut.
        cuts = [0, *(match.start() + 1 for match in self._names.finditer(text)), len(text)]
        return [
            token
            for first, end in pairwise(cuts)
            for token in self._split(text[first:end])
            if token not in self.special_ids
        ]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of several texts."""
        return [self.encode(text) for text in texts]

    def _split(self, text: str) -> list[int]:
        """The tokens of exactly this text: some models have a space put before the first word."""
        if not self._adds_space or not text:
            return self._plain(text)
        ids, begun = self._plain(_FIRST + text), b""
        for count, token in enumerate(ids, 1):
            begun += self._bytes[token]
            if begun == b" " + _FIRST.encode():
                return ids[count:]
        return self._plain(text)  # its first token is one with what was put before it

    @cached_property
    def _adds_space(self) -> bool:
        return self.decode_bytes(self._plain("x")) == b" x"

    def _plain(self, text: str) -> list[int]:
        data = text.encode("utf-8", errors="replace")
        most = len(data) + 2
        found = (ctypes.c_int32 * most)()
        count = self._library("tokenize", self._vocab, data, len(data), found, most, False, False)
        if count < 0:
            raise WeightsError("libllama cannot split a text into tokens")
        return list(found[:count])

    def _piece(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(_LONGEST_PIECE)
        length = self._library("token_to_piece", self._vocab, token, buffer, _LONGEST_PIECE, 0, False)
        return buffer.raw[: max(length, 0)]


def tokenizer_of(file: GgufReader, library: Library, vocab: int) -> Tokenizer:
    """The tokenizer of an opened model: ours where it knows the kind, or libllama's."""
    try:
        return Tokenizer(file.vocabulary())
    except OtherKindError:
        tokens = file.texts("tokenizer.ggml.tokens")
        if len(tokens) != library("vocab_n_tokens", vocab):
            raise WeightsError(f"the tokenizer of {file.path} is damaged; fetch the file again") from None
        special = {i for i in range(len(tokens)) if library("vocab_get_attr", vocab, i) & _NO_TEXT}
        pre = str(file.optional("tokenizer.ggml.pre") or file.optional("tokenizer.ggml.model"))
        return LlamaTokenizer(library, vocab, file.vocabulary_of(tokens, special, pre))


log = logging.getLogger(__name__)

# Keys and values are in half precision.
_BYTES = 2
# Bytes on GPUs that are left for keys, values and passes.
SPARE = 2 << 30


class LlamaConfig(ModelConfig, frozen=True):
    """The shape of a model that libllama runs, as far as it matters to us; ``weights`` are all that it has."""

    weights: int = 0

    @property
    def num_weights(self) -> int:
        """The weights, those of all experts included."""
        return self.weights


@dataclass(frozen=True)
class LoadedLlama(LoadedFim):
    """A model that libllama runs; all its documents share the ``cells`` of one context."""

    cells: Cells | None = None

    def tracks(self, costs: PassCosts | None = None) -> TrackReader:
        """A reader of runs of tokens that has read none yet."""
        assert self.cells is not None
        assert isinstance(self.transformer, LlamaNetwork)
        config = self.config
        each = 2 * config.num_layers * config.num_kv_heads * config.head_dim * _BYTES
        return LlamaTracks(self.transformer, self.cells, each, costs)

    @cached_property
    def pieces(self) -> ContextPieces:
        """The pieces in which contexts are read: the library cannot pause."""
        return ContextPieces(HOST, whole=True)


def load_llama(path: Path, name: str, *, threads: int = 0, libllama: str = "") -> LoadedLlama:
    """Open the GGUF file at ``path`` with libllama, on the devices that it finds; ``libllama`` names the library.

    Raises WeightsError where there is no library, or where it or we cannot read the file: damaged, without
    fill-in-the-middle tokens, or with a memory that cannot take tokens back. Raises MemoryError.
    """
    file = GgufReader(path)  # refuses what is damaged before the library sees it
    found = library(libllama)
    rehearse(path, found.path)
    params = found("model_default_params")
    params.put(*api.GPU_LAYERS, gpu_layers(file, found.devices()))
    params.put(*api.CHECK_TENSORS, True)
    found.first_error = ""
    model = found("model_load_from_file", str(path).encode(), params)
    if not model:
        raise WeightsError(f"libllama cannot read {path} ({found.complaint})")
    try:
        _refuse_other_memory(found, model, path)
        tokenizer = tokenizer_of(file, found, found("model_get_vocab", model))
        if tokenizer.fim is None:
            raise WeightsError(NO_TOKENS.format(path))
        config = _config(found, model, path, tokenizer.vocab_size)
        size, threads = config.vocab_size, threads or choose_threads()
        cells = Cells(found, model, count=config.max_positions, threads=threads, vocab_size=size)
    except BaseException:
        found("model_free", model)
        raise
    finalize(cells, _closed, found, cells.context, model).atexit = False
    log.info("%s is read by libllama, on %s", name, ", ".join(device.name for device in found.devices()))
    if not cells.can_shift:
        log.warning("%s has keys that cannot be moved, so each keystroke has the whole suffix read again", name)
    network, prefixes = LlamaNetwork(config), PrefixTable(tokenizer)
    return LoadedLlama(name, config, tokenizer, network, prefixes, path=path, cells=cells)


def gpu_layers(file: GgufReader, devices: Sequence[Device]) -> int:
    """How many of a model's layers fit into the free memory of the GPUs; -1: all, with what is outside of layers."""
    free = sum(device.free for device in devices if device.is_gpu) - SPARE
    size = file.path.stat().st_size
    if free >= size:
        return -1
    layers = file.number(f"{file.field('general.architecture')}.block_count")
    return max(int(layers * free / size), 0)


def _refuse_other_memory(found: Library, model: int, path: Path) -> None:
    """Raise WeightsError for a model whose memory cannot take tokens back."""
    kinds = {"recurrent": "model_is_recurrent", "hybrid": "model_is_hybrid", "diffusion": "model_is_diffusion"}
    for kind, name in {**kinds, "encoder-decoder": "model_has_encoder"}.items():
        if found(name, model):
            raise WeightsError(f"{path} holds a {kind} model, whose memory cannot take back tokens; it fills no gaps")


def _config(found: Library, model: int, path: Path, vocab_size: int) -> LlamaConfig:
    heads, hidden = found("model_n_head", model), found("model_n_embd", model)
    return LlamaConfig.of(
        path,
        num_layers=found("model_n_layer", model),
        hidden_size=hidden,
        intermediate_size=hidden,
        num_heads=heads,
        num_kv_heads=found("model_n_head_kv", model) or heads,
        head_dim=max(hidden // max(heads, 1) // 2 * 2, 2),
        vocab_size=vocab_size,
        rope_theta=1.0,
        max_positions=min(found("model_n_ctx_train", model), HOST_POSITIONS),
        weights=found("model_n_params", model),
    )


def _closed(found: Library, context: int, model: int) -> None:
    found("free", context)
    found("model_free", model)
