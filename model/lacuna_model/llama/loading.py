"""Opens a GGUF file with libllama as a fill-in-the-middle model that is read as any other."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from weakref import finalize

from lacuna_model.core.errors import WeightsError
from lacuna_model.fim.drafting.costs import PassCosts
from lacuna_model.fim.loading import NO_TOKENS, LoadedFim
from lacuna_model.fim.pieces import ContextPieces
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.llama import library as api
from lacuna_model.llama.cells import Cells
from lacuna_model.llama.library import Device, Library, library
from lacuna_model.llama.rehearsal import rehearse
from lacuna_model.llama.tracks import LlamaNetwork, LlamaTracks
from lacuna_model.llama.vocabulary import tokenizer_of
from lacuna_model.loading.gguf_reader import GgufReader
from lacuna_model.network.config import HOST_POSITIONS, ModelConfig
from lacuna_model.network.devices import HOST, choose_threads
from lacuna_model.tokens.prefixes import PrefixTable

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
    """A model that libllama runs; all its documents share the ``cells`` of one context.

    ``library`` is the file of the libllama that runs it.
    """

    cells: Cells | None = None
    library: Path | None = None

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
    model = _opened(found, file)
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
    network = LlamaNetwork(config)
    prefixes = PrefixTable(tokenizer)
    return LoadedLlama(
        name, config, tokenizer, network, prefixes, tokenizer.fim, path=path, cells=cells, library=found.path
    )


def gpu_layers(file: GgufReader, devices: Sequence[Device]) -> int:
    """How many of a model's layers fit into the free memory of the GPUs; -1: all, with what is outside of layers."""
    free = sum(device.free for device in devices if device.is_gpu) - SPARE
    size = file.path.stat().st_size
    if free >= size:
        return -1
    layers = file.number(f"{file.field('general.architecture')}.block_count")
    return max(int(layers * free / size), 0)


def _opened(found: Library, file: GgufReader) -> int:
    """The model; raises WeightsError where libllama cannot open it."""
    path, params = file.path, found("model_default_params")
    params.put(*api.GPU_LAYERS, gpu_layers(file, found.devices()))
    params.put(*api.CHECK_TENSORS, True)
    found.first_error = ""
    model = found("model_load_from_file", str(path).encode(), params)
    if not model:
        raise WeightsError(f"libllama cannot read {path} ({found.complaint})")
    return int(model)


def _refuse_other_memory(found: Library, model: int, path: Path) -> None:
    """Raise WeightsError for a model whose memory cannot take tokens back."""
    kinds = {"recurrent": "model_is_recurrent", "hybrid": "model_is_hybrid", "diffusion": "model_is_diffusion"}
    for kind, name in {**kinds, "encoder-decoder": "model_has_encoder"}.items():
        if found(name, model):
            raise WeightsError(f"{path} holds a {kind} model, whose memory cannot take back tokens; it fills no gaps")


def _config(found: Library, model: int, path: Path, vocab_size: int) -> LlamaConfig:
    heads, hidden = found("model_n_head", model), found("model_n_embd", model)
    shared = found("model_n_head_kv", model) or heads
    try:
        return LlamaConfig(
            num_layers=found("model_n_layer", model),
            hidden_size=hidden,
            intermediate_size=hidden,
            num_heads=heads,
            num_kv_heads=shared,
            head_dim=max(hidden // heads // 2 * 2, 2),
            vocab_size=vocab_size,
            rope_theta=1.0,
            max_positions=min(found("model_n_ctx_train", model), HOST_POSITIONS),
            weights=found("model_n_params", model),
        )
    except (ValueError, ZeroDivisionError) as error:
        raise WeightsError(f"{path} has a shape that is not supported: {error}") from error


def _closed(found: Library, context: int, model: int) -> None:
    found("free", context)
    found("model_free", model)
