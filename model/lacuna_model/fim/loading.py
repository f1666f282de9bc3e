"""Loads a fill-in-the-middle model from a GGUF file or a folder, in the precision that is fast on the device.

The first load prepares the weights in the order in which this machine's kernels read them, and keeps them in the user's
cache; later loads read that file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path

import torch
from msgspec.structs import replace
from torch import Tensor

from lacuna_kernels import native
from lacuna_kernels.compiling import INSTRUCTION_SETS
from lacuna_kernels.native import NativeKernels
from lacuna_model.core.errors import RequestError, WeightsError
from lacuna_model.decode.sampling import PrefixTable
from lacuna_model.fim.costs import AcceptanceRates, PassCosts
from lacuna_model.fim.masked_passes import MaskedPasses
from lacuna_model.fim.passes import ContextPieces, SharedPasses
from lacuna_model.fim.preparing import for_gpu, prepared
from lacuna_model.fim.track import Digests
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.hub import machine, models
from lacuna_model.hub.atomic import keep
from lacuna_model.loading import rows_file
from lacuna_model.loading.chat import ChatTemplate, read_chat_template
from lacuna_model.loading.checkpoint import Checkpoint, Tensors
from lacuna_model.loading.families import EditFormat, edit_format
from lacuna_model.loading.prepared import (
    PREPARED_BYTES,
    PREPARED_KEPT,
    Preparation,
    prepared_path,
    read_prepared,
    write_prepared,
)
from lacuna_model.loading.weights import GgufFile, GgufTensors
from lacuna_model.network.assembly import build_transformer, fuse
from lacuna_model.network.config import HOST_POSITIONS, MAX_POSITIONS, ModelConfig
from lacuna_model.network.devices import (
    HOST,
    cache_dtype,
    check_eight_bit,
    choose_device,
    choose_threads,
    default_precision,
)
from lacuna_model.network.linear import EDIT, INFILL
from lacuna_model.network.transformer import Network, Transformer
from lacuna_model.tokenizer import FimTokens, Tokenizer

# The kinds of the prepared forms of :func:`.preparing.for_gpu`.
GPU_8_BIT, HALF = "int8 gpu", "bfloat16"
# Says that a file's model cannot fill gaps, and which ones can.
NO_TOKENS = (
    "{} holds a model without fill-in-the-middle tokens, which cannot fill gaps; Qwen2.5-Coder, Qwen3-Coder, "
    "StarCoder2, Granite, CodeGemma, DeepSeek-Coder, Seed-Coder, Codestral and Mellum have them"
)
# Ends the kind of the prepared form of a model that drafts for another one.
DRAFTS = " drafts"
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
        return 0 if self.transformer.masks is None else self.transformer.masks.most

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
    kept = torch.bfloat16 if transformer.is_native else cache_dtype(precision, place)
    kept = torch.int8 if eight_bit_keys else kept
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


def opened(path: Path, folder: Checkpoint | None) -> tuple[GgufTensors | Tensors, Preparation]:
    """The weights at a path, and the model's config and vocabulary; raises WeightsError where it cannot fill gaps."""
    weights: GgufTensors | Tensors
    if folder is not None:
        about = Preparation(folder.config, folder.tokenizer.vocabulary)
        weights = folder.state(torch.device("cpu"), torch.float32)
    else:
        file = GgufFile(path)
        about = Preparation(file.config(), file.vocabulary())
        weights = file.state()
    if about.vocabulary.fim is None and (folder is None or folder.is_causal):
        raise WeightsError(NO_TOKENS.format(path))
    return weights, about
