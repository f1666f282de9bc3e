"""Measures how long a model's passes take on this machine: for its first line, and before its first request."""

import time

import torch

from lacuna_model.fim.loading import CALIBRATION_TOKENS, LoadedFim, calibration_text
from lacuna_model.fim.tracks import Track, TrackReader
from lacuna_model.hub.speed import undisturbed

# A line takes a pass that reads what was typed and the near suffix, and some that verify drafts: their rows.
LINE_ROWS = (12, 3, 3, 3)
# The first costs are those of passes of so many rows: narrower passes than were seen are taken to cost as much, so that
# too wide ones would never be compared with them.
PASS_ROWS = (1, 8)


@torch.inference_mode()
def line_ms(model: LoadedFim) -> float:
    """The milliseconds of a line after some context, as on an idle machine."""
    ids = model.tokenizer.encode(calibration_text())[:CALIBRATION_TOKENS]
    reader = model.tracks()
    context, line = reader.new(), reader.new()
    context.become(ids, 0)
    reader.read([[context]])
    return undisturbed(lambda: _timed(reader, [context, line], ids))


@torch.inference_mode()
def first_costs(model: LoadedFim) -> None:
    """Let a model's costs know what a pass takes, roughly, and bring its weights into memory."""
    ids = model.tokenizer.encode(calibration_text())[: sum(PASS_ROWS)]
    reader = model.tracks()
    track = reader.new()
    for rows in PASS_ROWS:
        track.become(ids[: len(track.ids) + rows], 0)
        began = time.perf_counter()
        reader.logits(reader.read([[track]])[track])
        model.costs.saw_pass(rows, (time.perf_counter() - began) * 1e3)


def _timed(reader: TrackReader, chain: list[Track], ids: list[int]) -> float:
    *_, line = chain
    began = time.perf_counter()
    line.become([], len(ids))
    for rows in LINE_ROWS:
        line.become(ids[: len(line.ids) + rows], len(ids))
        reader.logits(reader.read([chain])[line][-min(rows, 4) :])
    return (time.perf_counter() - began) * 1e3
