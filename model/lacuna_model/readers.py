"""One interface to all kinds of models: loads them, and makes their context caches and readers.

Fill-in-the-middle models keep the context encoded for later requests, open diffusion checkpoints for the passes of one.
"""

import logging
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

from lacuna_model.core.context import Layout
from lacuna_model.core.errors import OtherKindError, WeightsError
from lacuna_model.core.params import DecodeOptions, FillStats, InfillRequest
from lacuna_model.decode.fill import Reader
from lacuna_model.diffusion.reading import BlockReader, FullReader, LoadedDiffusion
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.draft_model import DraftModel, can_draft
from lacuna_model.fim.drafts import Drafts
from lacuna_model.fim.loading import LoadedFim, load_fim
from lacuna_model.fim.prompt import prompt_head
from lacuna_model.fim.reading import FimReader
from lacuna_model.hub import models
from lacuna_model.loading.checkpoint import Checkpoint
from lacuna_model.loading.weights import GgufFile
from lacuna_model.prior.index import Segment
from lacuna_model.snippets.format import join
from lacuna_model.tokenizer import Tokenizer

log = logging.getLogger(__name__)

# The values of a setting that names no draft model.
AUTO, NONE = "auto", "none"
# The readers of a GGUF file: our own layers, or libllama; AUTO takes libllama for what our own do not read.
OWN, LLAMA = "own", "llama"
# How keys and values are kept, if not as usual, for which AUTO stands.
EIGHT_BIT = "8bit"

Loaded = LoadedDiffusion | LoadedFim


class NoCache:
    """The cache of a diffusion model, which keeps nothing between two requests."""

    num_bytes = 0

    def updating(self, layout: Layout, *, ahead: bool = False) -> Generator[None, None, FillStats]:
        """Count the context's tokens, without a pause."""
        yield from ()
        return FillStats(context_tokens=len(layout.opening) + sum(map(len, layout.segments)))


Cache = NoCache | FimContext


class ReadOptions(TypedDict, total=False):
    """How a model is read.

    ``draft_model`` names a smaller model of the same tokens that drafts for it, NONE for no such model; AUTO takes the
    registry's small model where it is on this machine and suits. ``backend`` is the reader of a GGUF file, and
    ``libllama`` the library of the user's own that is to read it. ``keys_and_values`` EIGHT_BIT keeps these in 8 bit,
    where our own layers fill gaps on a GPU; others have a form of their own, and a line of the log says so.
    """

    threads: int
    device: str
    draft_model: str
    backend: str
    libllama: str
    keys_and_values: str


def load(model: str, **how: Unpack[ReadOptions]) -> Loaded:
    """Load a model of the registry by name, a GGUF file with fill-in-the-middle tokens, or the model in a folder.

    Raises ModelNotFoundError, WeightsError (also where a named draft model has other tokens) or, where the device is
    missing or cannot do what is asked, DeviceError.
    """
    place = models.weights(model)
    if place.is_dir() and not Checkpoint(place).is_causal:
        _leave_keys(how, model)
        return load_checkpoint(place, threads=how.get("threads", 0), device=how.get("device", ""))
    loaded = _loaded(place, model, how)
    return replace(loaded, smaller=_smaller(loaded, how))


def _leave_keys(how: ReadOptions, name: str) -> None:
    if how.get("keys_and_values") == EIGHT_BIT:
        log.warning("%s has keys and values of its own form, not in 8 bit", name)


def _loaded(place: Path, name: str, how: ReadOptions, *, drafts: bool = False) -> LoadedFim:
    """A model that fills in the middle, by the reader that it needs; ours goes first for one that ``drafts``."""
    threads, backend = how.get("threads", 0), how.get("backend", AUTO)
    if backend != LLAMA or drafts:
        try:
            return load_fim(
                place,
                name,
                threads=threads,
                device=how.get("device", ""),
                drafts=drafts,
                eight_bit_keys=how.get("keys_and_values") == EIGHT_BIT,
            )
        except OtherKindError as error:
            if backend == OWN or place.is_dir():
                raise
            log.info("%s; libllama reads it", error)
    if place.is_dir():
        raise WeightsError(f"libllama reads GGUF files, and {place} is a folder")
    _leave_keys(how, name)
    from lacuna_model.llama.loading import load_llama  # only where it is needed

    return load_llama(place, name, threads=threads, libllama=how.get("libllama", ""))


def _smaller(loaded: LoadedFim, how: ReadOptions) -> LoadedFim | None:
    """The model that drafts for a loaded one, or None; raises WeightsError where a named one cannot."""
    name = how.get("draft_model", AUTO)
    is_named = name != AUTO
    if not is_named:
        small = models.drafting(loaded.config.num_weights)
        name = small.name if small is not None and models.state(small) == "ready" else NONE
    if name == NONE:
        return None
    try:
        smaller = _loaded(models.weights(name), name, how, drafts=True)
        if not can_draft(smaller, loaded):
            raise WeightsError(f"{name} has other tokens than {loaded.name}, so it cannot draft for it")
    except (WeightsError, MemoryError) as error:
        if is_named:
            raise
        log.warning("no smaller model drafts: %s", error)
        return None
    # One copy of what both have.
    return replace(smaller, tokenizer=loaded.tokenizer, prefixes=loaded.prefixes)


def load_tokenizer(name: str) -> Tokenizer:
    """Load only the tokenizer of a model: of the registry, of a GGUF file, or of the checkpoint in a folder."""
    place = models.weights(name)
    return Checkpoint(place).tokenizer if place.is_dir() else Tokenizer(GgufFile(place).vocabulary())


def load_checkpoint(folder: Path, *, threads: int = 0, precision: str = "", device: str = "") -> LoadedDiffusion:
    """Load the diffusion checkpoint in a folder; ``precision`` and ``device`` as in :func:`.fim.loading.load_fim`."""
    how = Checkpoint(folder).diffusion
    read = load_fim(folder, str(folder), threads=threads, precision=precision, device=device)
    return LoadedDiffusion(
        read.name, how, read.config, read.tokenizer, read.layers, read.prefixes, read.cache_dtype, folder
    )


def new_cache(model: Loaded) -> Cache:
    """An empty cache for the context of one document."""
    if isinstance(model, LoadedDiffusion):
        return NoCache()
    smaller = new_cache(model.smaller) if model.smaller is not None else None
    assert smaller is None or isinstance(smaller, FimContext)
    return FimContext(model.tracks(model.costs), model.tokenizer, model.fim, pieces=model.pieces, smaller=smaller)


def opening(model: Loaded, request: InfillRequest) -> Sequence[int]:
    """The tokens before the open file's text: the snippets, and the first tokens of the model's format."""
    fim = model.tokenizer.fim
    if fim is not None:
        return prompt_head(fim, model.tokenizer, request.snippets, request.path)
    return model.tokenizer.encode(join(request.snippets))


def reader(model: Loaded, cache: Cache, layout: Layout, known: Sequence[Segment], options: DecodeOptions) -> Reader:
    """The reader of a request's fills; drafts come from the segments in ``known``.

    Checkpoints get no drafts, since they cannot verify them.
    """
    if isinstance(model, LoadedDiffusion):
        return (BlockReader if model.how.block_size else FullReader)(model, layout, options)
    assert isinstance(cache, FimContext)
    most = model.most_masks if options.drafter and model.smaller is None else 0
    drafts = Drafts(layout, known if options.prior else (), model.costs, model.rates, model.tokenizer.special_ids, most)
    helps = options.drafter and layout.header is None and model.smaller is not None
    smaller = DraftModel(model, cache) if helps else None
    return FimReader(model, cache, drafts, layout, options, smaller)
