"""The step with mask rows: their passes as graphs, and rounds in which a smaller model drafts by them."""

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from msgspec.structs import replace
from tests.gpu.engine_steps import CACHE_BYTES, loaded, requests, run
from tests.gpu.harness import Place, Report
from tests.gpu.shapes import CONTEXT, SHAPES, TINY, filled_arena
from tests.model import tiny_masks
from tests.model.fim import tiny_fim

from lacuna_model.core.params import InfillRequest, InfillResult, ReadContext
from lacuna_model.engine import Engine
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.loading import rows_file
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.transformer import PassPart, Transformer

# Masks behind each gap's token.
MASKS = (1, 3, 7)


def masks(place: Place, report: Report) -> None:
    """The 1.5B's shape with the 0.5B's as the model that drafts, by masks alone: random weights but for the masks.

    Every round asks for drafts, none of which is likely to hold: what a round costs is shown, not what it yields.
    """
    tiny = replace(TINY, vocab_size=len(tiny_fim.VOCABULARY.tokens))
    large, small = (tiny, tiny) if place.pretend else (SHAPES["1.5B"], SHAPES["0.5B"])
    model = loaded(place, large)
    drafter = with_masks(loaded(place, small, like=model))
    model = dataclasses.replace(model, smaller=drafter, costs=tiny_fim.Paying())
    context = 20 if place.pretend else CONTEXT
    for gaps in (1,) if place.pretend else (1, 8):
        for count in (0, *(MASKS[:1] if place.pretend else MASKS)):
            with torch.inference_mode():
                took = place.ms(read(drafter.layers, place, small, context, gaps, count))
            report.add(f"0.5B: {gaps} tokens with {count} masks each, ms", took, "1.5" if gaps == 1 else "")
    most = 4 if place.pretend else 64
    for batch in (1,) if place.pretend else (1, 8):
        wanted = [
            replace(one, options=replace(one.options, prior=False)) for one in requests(model, batch, context, most)
        ]
        plain = dataclasses.replace(model, smaller=None)
        fills = [one.fills for one in _rounds(report, f"batch {batch}, no drafts", plain, wanted)]
        same = [one.fills for one in _rounds(report, f"batch {batch}, masks", model, wanted)] == fills
        report.add(f"batch {batch}: the fills are the same", same, "True")
    report.add("a pass of the 0.5B over a gap with masks, ms", drafter.costs.ms(8, 7))


def with_masks(model: LoadedFim) -> LoadedFim:
    """The model with mask rows: those that ship, or for another shape random ones."""
    shipped = rows_file.shipped("qwen2.5-coder-0.5b")
    if model.config.hidden_size == SHAPES["0.5B"].hidden_size and shipped is not None:
        return dataclasses.replace(model, transformer=rows_file.read(shipped, model.layers, None))
    with tempfile.TemporaryDirectory() as folder:
        file = tiny_masks.write(Path(folder) / "masks.safetensors", model.config)
        return dataclasses.replace(model, transformer=rows_file.read(file, model.layers, None))


def read(
    model: Transformer, place: Place, config: ModelConfig, context: int, gaps: int, count: int
) -> Callable[[], object]:
    """A pass over a token of each of some gaps, with ``count`` masks behind it."""
    stores = [filled_arena(config, place.device, context, seed) for seed in range(gaps)]
    seen = torch.ones((count + 1, context + count + 1), dtype=torch.bool).tril(context)
    ids = [*range(5, 5 + gaps), *(-1 - mask for _ in stores for mask in range(count))]
    positions = [context] * gaps + [context + 1 + mask for _ in stores for mask in range(count)]
    # The tokens of all gaps come first, then the masks behind each of them.
    parts = [PassPart(1, store, seen[:1, : context + 1]) for store in stores]
    parts += [PassPart(count, store.behind(1), seen[1:]) for store in stores if count]

    def run() -> object:
        return model.head(model.read(ids, positions, parts).states).argmax(-1)

    return run


def _rounds(report: Report, name: str, model: LoadedFim, wanted: Sequence[InfillRequest]) -> list[InfillResult]:
    """Fill all requests, and report what a round takes."""
    engine = Engine(model, cache_bytes=CACHE_BYTES)
    for request in wanted:  # both models read the contexts
        engine.fill(replace(request, task=ReadContext()))
    run(engine, wanted)  # graphs are recorded
    tokens, passes, seconds = run(engine, wanted)
    about = {
        "tokens_s": round(tokens / seconds, 2),
        "tokens_a_pass": round(tokens / passes, 3),
        "ms_a_round": round(seconds * 1e3 / passes * len(wanted), 3),
    }
    report.add(name, about)
    return [engine.fill(request) for request in wanted]
