"""The kinds of models behind one door: what each keeps of a document's context, and what reads its canvases.

Fill-in-the-middle models and those that a two-sided context was made for keep it encoded; open diffusion checkpoints
read the whole text anew in each pass.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from lacuna_model import models
from lacuna_model.assembly import build_transformer, fuse
from lacuna_model.candidates import Reader
from lacuna_model.checkpoint import Checkpoint
from lacuna_model.context import Layout, Opening
from lacuna_model.devices import choose_device
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.drafts import ProjectDrafts
from lacuna_model.fim.loading import LoadedFim, load_fim
from lacuna_model.fim.prompt import prompt_head
from lacuna_model.fim.reading import FimReader, fronts
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel, load_model
from lacuna_model.params import DecodeOptions, InfillRequest
from lacuna_model.prefixes import PrefixTable
from lacuna_model.prior.canvas_prior import CanvasPrior
from lacuna_model.prior.index import Segment
from lacuna_model.prior.statements import Statements
from lacuna_model.snippets.format import join
from lacuna_model.two_sided import TwoSidedModel
from lacuna_model.whole_sequence import LoadedCheckpoint, NoCache, WholeSequenceModel

Loaded = LoadedModel | LoadedCheckpoint | LoadedFim
Cache = ContextCache | NoCache | FimContext


def load(model: str, *, threads: int = 0, device: str = "") -> Loaded:
    """A model of the registry by its name, a GGUF file with fill-in-the-middle tokens, or the checkpoint in a folder.

    Raises ModelNotFoundError, WeightsError or, where the ``device`` is not here, DeviceError.
    """
    if (folder := models.folder(model)) is not None:
        return load_checkpoint(folder, choose_device(device))
    if (file := models.file(model)) is not None:
        return load_fim(file, model, threads=threads, device=device)
    info = models.find(model)
    if not info.adapter:
        return load_fim(models.path(info), model, threads=threads, device=device)
    return load_model(model, threads=threads, device=device)


def load_checkpoint(folder: Path, device: torch.device, dtype: torch.dtype | None = None) -> LoadedCheckpoint:
    """The checkpoint in a folder; without a ``dtype`` in bfloat16 on a GPU, else in float32."""
    checkpoint = Checkpoint(folder)
    config, tokenizer = checkpoint.config, checkpoint.tokenizer()
    dtype = dtype or (torch.bfloat16 if device.type == "cuda" else torch.float32)
    transformer = build_transformer(config, fuse(checkpoint.state(device, dtype), config))
    return LoadedCheckpoint(str(folder), config, tokenizer, transformer, PrefixTable(tokenizer, device), dtype)


def new_cache(model: Loaded) -> Cache:
    """What a model keeps of a document's context, as yet nothing."""
    match model:
        case LoadedFim():
            return FimContext(model.transformer, model.tokenizer, model.cache_dtype)
        case LoadedCheckpoint():
            return NoCache()
        case LoadedModel():
            return ContextCache(model.base, dtype=model.cache_dtype)


def opening(model: Loaded, request: InfillRequest) -> Opening:
    """What the streams of a request's layout open with: the snippets, and whatever the model was trained to see."""
    if isinstance(model, LoadedFim):
        return Opening(tuple(prompt_head(model.fim, model.tokenizer, request.snippets, request.path)), model.fim.suffix)
    document = model.tokenizer.document_id
    return Opening((document, *model.tokenizer.encode(join(request.snippets))), document)


def reader(
    model: Loaded,
    cache: Cache,
    layout: Layout,
    known: Sequence[Segment],
    statements: Sequence[Statements],
    options: DecodeOptions,
) -> Reader:
    """What reads the canvases of a request; ``known`` is what the prior looks in.

    Checkpoints go without it and without ``statements``: how these are mixed in was fitted to the embedded model, and
    the base verifies what the prior says.
    """
    if isinstance(model, LoadedCheckpoint):
        return WholeSequenceModel(model, layout)
    if isinstance(model, LoadedFim):
        assert isinstance(cache, FimContext)
        drafts = ProjectDrafts(known, fronts(layout), model.tokenizer.eog_id) if options.prior else None
        return FimReader(model, cache, layout, drafts)
    assert isinstance(cache, ContextCache)
    above = [beside.above for beside in statements]
    prior = CanvasPrior(known, layout, eog_id=model.tokenizer.eog_id, above=above) if options.prior else None
    return TwoSidedModel(model, cache, layout, guidance=options.guidance, prior=prior, statements=statements)
