"""The loop of a training: steps for a given time, with a notice now and then, on a CPU and on a GPU."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from lacuna_model.core.errors import LacunaError
from training.masks.feeding import Batch
from training.masks.fitting import Fit

LEAST_SHARE = 1 / 64


@dataclass(slots=True)
class Progress:
    """What a loop has done: its ``steps``, the ``tokens`` read, the ``rows`` of masks trained; the ``loss`` of late.

    Tokens and rows are counted with those that fill up batches and groups.
    ``share`` of each batch is used: half of it, and so on, where memory runs out.
    """

    seconds: float = 0.0
    steps: int = 0
    tokens: int = 0
    rows: int = 0
    loss: float = 0.0
    share: float = 1.0


def train(
    fit: Fit,
    batches: Iterator[Batch],
    *,
    rows: int,
    done: Callable[[float, int], float],
    notice: Callable[[Progress], None],
    every_s: float,
) -> Progress:
    """Train on ``rows`` rows of each batch until ``done``, which is told the seconds and the steps, says 1.

    ``notice`` is called about every ``every_s`` seconds, which are the only times at which the device is waited for.
    Raises LacunaError where the loss is no number any more.
    """
    found, began, noticed = Progress(), time.monotonic(), 0.0
    lately: torch.Tensor | None = None
    while (share := done(found.seconds, found.steps)) < 1:
        whole = next(batches)
        batch, wanted = whole.first(round(len(whole.ids) * found.share)), round(rows * found.share)
        if (loss := _step(fit, batch, wanted, share, may_lack=found.share > LEAST_SHARE)) is None:
            found.share /= 2
            torch.cuda.empty_cache()
            continue
        lately = loss if lately is None else lately.lerp(loss, 0.05)
        found.steps += 1
        found.tokens += batch.ids.numel()
        found.rows += wanted
        found.seconds = time.monotonic() - began
        if found.seconds - noticed >= every_s or found.steps == 1:
            noticed = found.seconds
            found.loss = float(lately)
            if found.loss != found.loss:
                raise LacunaError("the loss is no number any more")
            notice(found)
    if lately is not None:
        found.loss = float(lately)
    return found


def _step(fit: Fit, batch: Batch, rows: int, done: float, *, may_lack: bool) -> torch.Tensor | None:
    """The loss of a step, None where memory ran out and ``may_lack``; the memory is free again then."""
    try:
        return fit.step(batch, rows, done)
    except torch.OutOfMemoryError:
        if not may_lack:
            raise
        return None
