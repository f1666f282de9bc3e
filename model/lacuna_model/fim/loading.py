"""Loads a fill-in-the-middle model from a GGUF file or a folder, in the precision that is fast on the device.

The first load prepares the weights in the form that passes read, a layer at a time, and keeps them in the user's cache;
later loads read that file. The kernels in C read the file's 4-bit weights unchanged, and all others in 8 bit. A model
that only drafts may be less exact: it has all layers in 4 bit and a part of the head, since reading weights is most of
the time of a pass. A GPU reads bfloat16, or 8-bit weights with activations in bfloat16.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import takewhile
from pathlib import Path
from typing import Protocol

import torch
from msgspec.structs import replace
from torch import Tensor

from lacuna_kernels import attention_dtype, native
from lacuna_kernels.compiling import INSTRUCTION_SETS
from lacuna_kernels.native import WIDTH, NativeKernels
from lacuna_kernels.quantised import GROUP, FourBitWeight, quantized, stacked
from lacuna_model.core.errors import RequestError, WeightsError
from lacuna_model.decode.sampling import PrefixTable
from lacuna_model.fim.costs import AcceptanceRates, PassCosts
from lacuna_model.fim.masked_passes import MaskedPasses
from lacuna_model.fim.passes import ContextPieces, SharedPasses
from lacuna_model.fim.track import Digests
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.hub import machine, models
from lacuna_model.hub.atomic import keep
from lacuna_model.loading import rows_file
from lacuna_model.loading.chat import ChatTemplate, read_chat_template
from lacuna_model.loading.checkpoint import Checkpoint
from lacuna_model.loading.families import EditFormat, Weights, edit_format
from lacuna_model.loading.prepared import (
    PREPARED_BYTES,
    PREPARED_KEPT,
    Preparation,
    prepared_path,
    read_prepared,
    write_prepared,
)
from lacuna_model.loading.weights import GgufFile
from lacuna_model.network.assembly import FUSED, State, build_transformer, fuse, fuse_layer, layer_of
from lacuna_model.network.config import HOST_POSITIONS, MAX_POSITIONS, ModelConfig
from lacuna_model.network.devices import (
    HOST,
    check_eight_bit,
    choose_device,
    choose_threads,
    default_precision,
)
from lacuna_model.network.linear import EDIT, INFILL, quantize_rows
from lacuna_model.network.transformer import Network, Transformer
from lacuna_model.tokenizer import FimTokens, Tokenizer

# The kinds of the prepared forms of :func:`for_gpu`.
GPU_8_BIT, HALF = "int8 gpu", "bfloat16"
# Says that a file's model cannot fill gaps, and which ones can.
NO_TOKENS = (
    "{} holds a model without fill-in-the-middle tokens, which cannot fill gaps; Qwen2.5-Coder, Qwen3-Coder, "
    "StarCoder2, Granite, CodeGemma, DeepSeek-Coder, Seed-Coder, Codestral and Mellum have them"
)
# Ends the kind of the prepared form of a model that drafts for another one.
DRAFTS = " drafts"
# The tokens of code are nearly all among the first of the vocabulary, which has frequent ones first: of those that the
# 1.5B writes in held-out files, 97 %. A multiple of ``WIDTH``.
FREQUENT_TOKENS = 49_152
# One tokenizer for a model and for that which drafts for it.
_made_of = lru_cache(maxsize=1)(Tokenizer)


@dataclass(frozen=True)
class LoadedFim:
    """A fill-in-the-middle model, ready to run; keys and values are kept in ``cache_dtype``, as an arena takes it.

    ``smaller`` is a model of the same tokens that drafts for it, if there is one. ``costs`` learns what passes cost
    here, and ``rates`` how drafts hold. ``path`` is the model's file or folder.
    """

    name: str
    config: ModelConfig
    tokenizer: Tokenizer
    transformer: Network
    prefixes: PrefixTable
    cache_dtype: torch.dtype = torch.float32
    smaller: "LoadedFim | None" = None
    costs: PassCosts = field(default_factory=PassCosts)
    rates: AcceptanceRates = field(default_factory=AcceptanceRates)
    path: Path | None = None

    @property
    def fim(self) -> FimTokens:
        """The tokens of its fill-in-the-middle format."""
        assert self.tokenizer.fim is not None
        return self.tokenizer.fim

    @property
    def answers(self) -> bool:
        """Whether it has outputs for all tokens; one that was made to draft only may have fewer."""
        return self.transformer.outputs >= self.config.vocab_size

    @property
    def most_masks(self) -> int:
        """How many mask rows may follow a token."""
        return 0 if self.transformer.masks is None else len(self.transformer.masks)

    @property
    def rewrites(self) -> bool:
        """Whether it has rows that were trained to rewrite lines behind a change."""
        return self.has_rows(EDIT)

    @property
    def fill_kind(self) -> str:
        """The kind of the rows of its fills: that of rows trained for gaps, "" where it has none."""
        return INFILL if self.has_rows(INFILL) else ""

    def has_rows(self, kind: str) -> bool:
        """Whether it has trained additions to rows of a ``kind``."""
        return isinstance(self.transformer, Transformer) and kind in self.transformer.added

    @cached_property
    def edit_format(self) -> EditFormat | None:
        """The prompt format of a model that was made for next edits, as its file says; None for other models."""
        return edit_format(self.path) if self.path is not None else None

    @cached_property
    def passes(self) -> SharedPasses:
        """The passes that the requests of this model share."""
        return SharedPasses(self.transformer, self.costs, self.digests)

    @cached_property
    def masked(self) -> MaskedPasses:
        """The passes in which it drafts for a larger model, which requests share."""
        return MaskedPasses(self.transformer, self.costs)

    @cached_property
    def digests(self) -> Digests:
        """What is kept of the logits of a pass."""
        eog, specials = self.tokenizer.eog_id, self.tokenizer.special_ids
        device = self.transformer.device
        return Digests(eog, tuple(sorted(self.fim.ends)), tuple(sorted(specials - {eog})), device)

    def tracks(self, costs: PassCosts | None = None) -> TrackReader:
        """A reader of runs of tokens that has read none yet; ``costs`` learn what a reading takes."""
        return TrackReader(self.layers, self.cache_dtype, costs)

    @property
    def layers(self) -> Transformer:
        """The model's own layers; raises RequestError where a library runs it."""
        if not isinstance(self.transformer, Transformer):
            raise RequestError(f"{self.name} is read by libllama; this needs a model that Lacuna's own layers read")
        return self.transformer

    @cached_property
    def pieces(self) -> ContextPieces:
        """The pieces in which contexts are read."""
        return ContextPieces(self.transformer.device)

    @cached_property
    def chat(self) -> ChatTemplate | None:
        """The model's own chat template, read when a chat first needs it; None where it has none."""
        return read_chat_template(self.path, self.tokenizer) if self.path is not None else None


def load_fim(
    path: Path,
    name: str,
    *,
    threads: int = 0,
    precision: str = "",
    device: str = "",
    drafts: bool = False,
    eight_bit_keys: bool = False,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> LoadedFim:
    """Load the GGUF file at ``path``, or the folder in Hugging Face's format.

    ``threads`` 0 leaves the choice to :func:`choose_threads`, ``device`` "" to :func:`choose_device`. ``precision`` ""
    takes bfloat16 on a GPU (8 bit for a model that drafts), 8 bit on a CPU that has our own kernels, and float32 on
    others. A model that only ``drafts`` for a larger one is made smaller and less
    exact. ``eight_bit_keys``: keys and values are kept in 8 bit. ``advance`` is called with the layers prepared and
    their total, where weights have to be prepared. Raises DeviceError, or WeightsError where the file cannot be read,
    or holds no diffusion model and no fill-in-the-middle tokens.
    """
    place = choose_device(device)
    if eight_bit_keys:
        check_eight_bit(place)
    threads = threads or choose_threads()
    torch.set_num_threads(threads)
    own = place == HOST and precision in ("", "int8")
    kernels = native.load(models.kernels_dir(), threads) if own else None
    if own:
        precision = "int8" if kernels is not None else "float32"
    precision = precision or default_precision(place, drafts=drafts)
    form = GPU_8_BIT if precision == "int8" and place != HOST else precision
    folder = Checkpoint(path) if path.is_dir() else None
    small = drafts and (kernels is not None or place != HOST)
    weights, about = _weights(path, folder, form, kernels, advance, small)
    # A folder has its own rules for splitting text.
    tokenizer = folder.tokenizer if folder is not None else _made_of(about.vocabulary)
    prefixes = PrefixTable(tokenizer, place)
    machine.reuse_freed()
    tensors = {name: tensor.to(place) for name, tensor in weights.items()}
    if "embedding" not in tensors and tensors["head"].dtype is torch.bfloat16:
        tensors["embedding"] = tensors["head"]
    most = HOST_POSITIONS if place == HOST else MAX_POSITIONS
    config = replace(about.config, max_positions=min(about.config.max_positions, most))
    transformer = build_transformer(config, tensors, kernels=kernels)
    if transformer.is_native:
        torch.set_num_threads(1)  # the operations left to torch are too short for several threads
    if eight_bit_keys:
        kept = torch.int8
    elif transformer.is_native:
        kept = torch.bfloat16
    else:
        kept = torch.float32 if precision == "float32" else attention_dtype(place)
    transformer = rows_file.with_shipped(name, transformer, drafts=drafts)
    return LoadedFim(name, config, tokenizer, transformer, prefixes, kept, path=path)


def prepared_forms(path: Path) -> list[Path]:
    """The prepared files of the GGUF file at ``path``, for whatever instructions they were made."""
    native_kinds = [f"int8 {instructions.name}" for instructions in INSTRUCTION_SETS]
    kinds = [HALF, GPU_8_BIT, "int8", *native_kinds]  # "int8": of versions that read them without our kernels
    kinds += [kind + DRAFTS for kind in kinds]
    return [file for kind in kinds if (file := prepared_path([path], kind)).is_file()]


def _weights(
    path: Path,
    folder: Checkpoint | None,
    form: str,
    kernels: NativeKernels | None,
    advance: Callable[[int, int], None],
    drafts: bool,
) -> tuple[Mapping[str, Tensor], Preparation]:
    if form == "float32":
        weights, about = opened(path, folder)
        return fuse(weights, about.config), about
    kind = (f"{form} {kernels.instructions.name}" if kernels else form) + DRAFTS * drafts
    kept = prepared_path(folder.files if folder is not None else [path], kind)
    if (found := read_prepared(kept)) is not None:
        return found
    weights, about = opened(path, folder)
    if form in (HALF, GPU_8_BIT):
        tensors = dict(for_gpu(weights, about.config, advance, eight_bit=form == GPU_8_BIT, drafts=drafts))
    else:
        assert kernels is not None
        tensors = dict(prepared(weights, about.config, kernels, advance, drafts=drafts))
    write = partial(write_prepared, tensors=tensors, about=about)
    keep(kept, "*.safetensors", write, most=PREPARED_KEPT, most_bytes=PREPARED_BYTES)
    if (found := read_prepared(kept)) is None:
        return tensors, about
    del tensors
    machine.give_back_freed()
    return found


def opened(path: Path, folder: Checkpoint | None) -> tuple[Weights, Preparation]:
    """The weights at a path, and the model's config and vocabulary; raises WeightsError where it cannot fill gaps."""
    if folder is not None:
        weights: Weights = folder.state()
        about = Preparation(folder.config, folder.tokenizer.vocabulary)
    else:
        file = GgufFile(path)
        weights, about = file.state(), Preparation(file.config(), file.vocabulary())
    if about.vocabulary.fim is None and (folder is None or folder.is_causal):
        raise WeightsError(NO_TOKENS.format(path))
    return weights, about


class Packing(Protocol):
    """The order in which kernels read weights."""

    def packed(self, codes: Tensor, /) -> Tensor:
        """Codes int8 [out, in] in that order."""
        ...

    def packed_blocks(self, weight: FourBitWeight, /) -> Tensor:
        """A 4-bit weight in that order, uint8 [out, bytes of an output]."""
        ...


def prepared(
    state: Weights,
    config: ModelConfig,
    kernels: Packing,
    advance: Callable[[int, int], None] = lambda done, total: None,
    *,
    drafts: bool = False,
) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of the model by name: linears as codes and scales, packed for ``kernels`` where these can read them.

    Where embedding and head are one table, only the packed head is made. ``advance`` is called with the number of
    layers done and their total. A model that only ``drafts`` is made smaller.
    """
    head = "embedding" if config.tie_embeddings else "head"
    if not _packable(config.hidden_size, config.vocab_size):
        yield from _quantized("head", state[head]).items()
        yield "embedding", state["embedding"].half()
    else:
        if drafts:
            codes, scale = quantize_rows(state[head][:FREQUENT_TOKENS])
            yield from (("head", kernels.packed(codes)), ("head.scale", scale))
        else:
            yield from _packed("head", [head], state, kernels).items()
        if drafts or not config.tie_embeddings:
            yield from _packed("embedding", ["embedding"], state, kernels).items()
    if _packable(config.hidden_size, config.intermediate_size, *_projected(config)):
        layers = (_packed_layer(state, index, kernels, drafts) for index in range(config.num_layers))
    else:
        layers = (_narrow_layer(state, index, eight_bit=True) for index in range(config.num_layers))
    yield from _in_turn(layers, config, advance)
    yield "final_norm", state["final_norm"]


def for_gpu(
    state: State,
    config: ModelConfig,
    advance: Callable[[int, int], None] = lambda done, total: None,
    *,
    eight_bit: bool = False,
    drafts: bool = False,
) -> Iterator[tuple[str, Tensor]]:
    """Every tensor by name as a GPU reads it; one layer at a time is in float32.

    Linears are in bfloat16, or with ``eight_bit`` codes and a scale for every output. Where embedding and head are one
    table in bfloat16, it is named head. A model that only ``drafts`` has a part of the head.
    """
    head = state["embedding" if config.tie_embeddings else "head"]
    yield from _narrow("head", head[:FREQUENT_TOKENS] if drafts else head, eight_bit).items()
    del head
    if drafts or eight_bit or not config.tie_embeddings:
        yield "embedding", state["embedding"].bfloat16()
    layers = (_narrow_layer(state, index, eight_bit) for index in range(config.num_layers))
    yield from _in_turn(layers, config, advance)
    yield "final_norm", state["final_norm"]


def _in_turn(
    layers: Iterator[dict[str, Tensor]], config: ModelConfig, advance: Callable[[int, int], None]
) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of the layers by name."""
    for index, layer in enumerate(layers):
        advance(index, config.num_layers)
        yield from ((f"layers.{index}.{name}", tensor) for name, tensor in layer.items())
    advance(config.num_layers, config.num_layers)


def _narrow(name: str, tensor: Tensor, eight_bit: bool) -> dict[str, Tensor]:
    """A linear in bfloat16 or in 8 bit, a bias in bfloat16; norms stay in float32."""
    if tensor.ndim == 2 and eight_bit:
        return _quantized(name, tensor)
    return {name: tensor.bfloat16() if tensor.ndim == 2 or name.endswith(".bias") else tensor}


def _narrow_layer(state: State, index: int, eight_bit: bool) -> dict[str, Tensor]:
    layer = fuse_layer({own: state[name] for own, name in layer_of(state, index).items()})
    return {part: kept for name, tensor in layer.items() for part, kept in _narrow(name, tensor, eight_bit).items()}


def packable(config: ModelConfig) -> bool:
    """Whether kernels in C read all linears of a model."""
    return _packable(config.hidden_size, config.vocab_size, config.intermediate_size, *_projected(config))


def _packable(*sizes: int) -> bool:
    return not any(size % WIDTH for size in sizes)


def _projected(config: ModelConfig) -> tuple[int, int]:
    """The numbers of query channels and of key (and value) channels."""
    return config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim


def _packed_layer(state: Weights, index: int, kernels: Packing, drafts: bool) -> dict[str, Tensor]:
    """One layer in the form that the kernels in C read."""
    names = layer_of(state, index)
    layer = fuse_layer({own: state[name] for own, name in names.items() if not own.endswith("_proj")})
    for name, parts in FUSED.items():
        layer |= _packed(name, [names[part] for part in parts], state, kernels, drafts)
    return layer


def _packed(
    name: str, parts: Sequence[str], state: Weights, kernels: Packing, drafts: bool = False
) -> dict[str, Tensor]:
    """The tensors of the linear ``name``, whose outputs are those of ``parts``.

    Leading 4-bit parts stay in 4 bit; where the model only ``drafts``, the others are made so.
    """

    def four_bit(part: str) -> FourBitWeight | None:
        found = state.four_bit(part)
        if found is not None or not drafts:
            return found
        weight = state[part]
        return quantized(weight) if weight.shape[1] % (2 * GROUP) == 0 else None

    small = [found for found in takewhile(bool, map(four_bit, parts)) if found]
    large = [state[part] for part in parts[len(small) :]]
    tensors = {}
    if small:
        tensors[name + ".blocks"] = kernels.packed_blocks(stacked(small))
    codes, scale = quantize_rows(torch.cat(large or [torch.empty((0, small[0].codes.shape[1]))]))
    return tensors | {name: kernels.packed(codes), name + ".scale": scale}


def _quantized(name: str, weight: Tensor) -> dict[str, Tensor]:
    codes, scale = quantize_rows(weight)
    return {name: codes, name + ".scale": scale}
