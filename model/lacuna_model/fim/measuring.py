"""How long a model's passes take on this machine: before its first request, and for the first line of a fill.

The time of a line decides the default model. It is measured when a model is prepared or first used, kept in the cache
folder, and put right by fills. A fill that is slow beside other programs changes nothing.
"""

import os
import time
from importlib import resources

import msgspec
import torch

from lacuna_model.fim.costs import PassCosts
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.masked_passes import MaskedPasses, WantedSlots
from lacuna_model.fim.passes import AskedChain, SharedPasses, Wanted
from lacuna_model.fim.track import EndRule, Track
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.hub import models
from lacuna_model.hub.atomic import keep
from lacuna_model.hub.machine import num_processors
from lacuna_model.hub.models import LARGE_WEIGHTS, speed_file
from lacuna_model.network.devices import HOST

# A line takes a pass that reads what was typed and the near suffix, and some that verify drafts: their rows.
LINE_ROWS = (12, 3, 3, 3)
# It is measured so many times, after so many tokens of context.
ROUNDS, CONTEXT = 4, 256
# The first costs are those of passes of so many rows: narrower passes than were seen are taken to cost as much, so that
# too wide ones would never be compared with them.
PASS_ROWS = (1, 8)
# Elsewhere, of so many, as requests make them.
USUAL_ROWS = (1, 2, 4, 8, 16, 32)


def sample() -> str:
    """Code of several languages, the same in every installation."""
    return resources.files("lacuna_model.fim").joinpath("sample.txt").read_text(encoding="utf-8")


@torch.inference_mode()
def line_ms(model: LoadedFim) -> float:
    """The milliseconds of a line after some context, the least of several."""
    ids = model.tokenizer.encode(sample())[:CONTEXT]
    reader = model.tracks()
    context, line = reader.new(), reader.new()
    context.become(ids, 0)
    reader.read([[context]])
    return min(_timed(reader, context, line, ids) for _ in range(ROUNDS))


@torch.inference_mode()
def first_costs(model: LoadedFim) -> None:
    """Let a model's costs know what a pass takes, roughly, and bring its weights into memory.

    Elsewhere than on the host the first pass of a width compiles kernels, and records the graph that requests will use:
    so the second one counts.
    """
    if model.transformer.device == HOST:
        for rows in PASS_ROWS:
            _read_as_requests_do(model, model.costs, rows, 0)
        return
    for rows in USUAL_ROWS:
        for masks in sorted({0, min(rows - 1, model.most_masks)}):
            for costs in (PassCosts(), model.costs):
                _read_as_requests_do(model, costs, rows, masks)


def _read_as_requests_do(model: LoadedFim, costs: PassCosts, rows: int, masks: int) -> None:
    """A pass over so many rows of a fill, the last of which are mask rows; the ``costs`` learn from it."""
    reader, count = model.tracks(), rows - masks
    track = reader.new(model.fill_kind if model.answers else "")
    track.become(model.tokenizer.encode(sample())[:count], 0)
    if not model.answers:
        MaskedPasses(model.transformer, costs).draft([WantedSlots(reader, [[track]], [])], masks)
        return
    tail = reader.new()
    tail.become([-1 - mask for mask in range(masks)], count)
    chains = [[track], [track, tail]][: 1 + (masks > 0)]
    asked = [AskedChain(chain, [EndRule()] * len(chain[-1].ids), len) for chain in chains]
    SharedPasses(model.transformer, costs, model.digests).read(Wanted(reader, asked))


def _timed(reader: TrackReader, context: Track, line: Track, ids: list[int]) -> float:
    """The milliseconds of the passes of a line, each until the device has its last logits."""
    line.become([], len(ids))
    began = time.perf_counter()
    for rows in LINE_ROWS:
        line.become(ids[: len(line.ids) + rows], len(ids))
        reader.logits(reader.read([[context, line]])[line][-min(rows, 4) :])[-1, 0].item()
    return (time.perf_counter() - began) * 1e3


# Fills tell of a speed that was measured wrong where they take so many times as long, or as short.
WRONG = 1.6


def is_busy() -> bool:
    """Whether more programs have wanted to run in the last minute than this machine has cores."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > num_processors() + 0.5


def learn(ms: float, num_weights: int) -> None:
    """Keep what a model of so many weights took for a line; its passes cost as much more as it has more weights."""
    file = speed_file()
    line = msgspec.json.encode({"line_ms": round(ms * LARGE_WEIGHTS / num_weights, 1)})
    keep(file, file.name, lambda stream: stream.write(line))


def correct(ms: float, num_weights: int) -> None:
    """Keep what a line took where that says that the known speed is wrong, or where none is known.

    On a busy machine it can only say that the model is faster than was known.
    """
    known, found = models.line_ms(), ms * LARGE_WEIGHTS / num_weights
    slow = not is_busy() and (known is None or found > known * WRONG)
    if slow or (known is not None and found < known / WRONG):
        learn(ms, num_weights)
