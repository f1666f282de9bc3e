"""The command ``rows``: fits the additions to rows of one kind, for a given time, from where it stopped."""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import torch

from lacuna_model.core.errors import LacunaError
from lacuna_model.loading import rows_file
from lacuna_model.network.devices import HOST, choose_device, choose_threads
from lacuna_model.tokens.tokenizer import Tokenizer
from training.masks.base import Base
from training.masks.fitting import RATE
from training.masks.main import plain_form
from training.masks.plain import dense
from training.rows.fitting import Measured, RowsFit
from training.rows.samples import Kind, RowSample, samples
from training.stored import checkpoint

# Samples of a step, on a CPU and on a GPU; samples that are measured.
BATCH, GPU_BATCH = 4, 32
HELD_OUT = 48
NOTICE_S = 120.0
# The held-out samples are measured at these shares of the time.
MARKS = (0.0, 1 / 3, 2 / 3, 1.0)
KEPT = {"fit", "progress"}


class Trained(msgspec.Struct):
    """What the training has done so far, over all its runs, and the ``curve``: the tokens at each mark, and figures."""

    seconds: float = 0.0
    samples: int = 0
    tokens: int = 0
    curve: list[tuple[int, Measured]] = []


def train(
    path: Path,
    corpus: Path,
    out: Path,
    kind: Kind,
    *,
    seconds: float,
    steps: int = 0,
    device: str = "",
    seed: int = 0,
    threads: int = 0,
    say: Callable[[str], None] = print,
    advance: Callable[[int], None] = lambda thousandths: None,
) -> Trained:
    """Fits rows until they were trained for so many ``seconds`` (or ``steps``), with what the folder ``out`` has.

    It leaves a checkpoint and the file of the rows there. Raises CorpusError where the corpus has no samples, or the
    checkpoint is of another version.
    """
    torch.set_num_threads(threads or choose_threads())
    place = choose_device(device)
    out.mkdir(parents=True, exist_ok=True)
    about, weights = plain_form(path, drafts=False)
    tokenizer = Tokenizer(about.vocabulary)
    assert tokenizer.fim is not None
    base = Base(about.config, dense(weights, about.config, place, _dtype(place)))
    del weights
    kept = checkpoint.read(out / f"{kind}.pt", KEPT)
    found = Trained() if kept is None else msgspec.convert(kept["progress"], Trained)
    fit = RowsFit(base, kind, rate=RATE, seed=seed + found.samples)
    if kept is not None:
        fit.go_on(kept["fit"])
    size = BATCH if place == HOST else GPU_BATCH
    held_out = samples(kind, corpus, "held_out", tokenizer, tokenizer.fim, 1)
    asked = list(_batches(itertools.islice(held_out, HELD_OUT), size))
    # Other samples than those that were drawn before.
    drawn = _batches(samples(kind, corpus, "train", tokenizer, tokenizer.fim, seed + found.samples), size)

    def share() -> float:
        return found.samples / (steps * size) if steps else found.seconds / max(seconds, 1e-6)

    def keep() -> None:
        kept = {"fit": fit.state(), "progress": msgspec.to_builtins(found)}
        checkpoint.write(out / f"{kind}.pt", kept)
        rows_file.write(out / f"{kind}.safetensors", fit.config, fit.tensors_now())

    shown, noticed, loss = 0, time.monotonic(), 0.0
    while True:
        if len(found.curve) < len(MARKS) and share() >= MARKS[len(found.curve)]:
            found.curve.append((found.tokens, fit.measure(asked)))
            say(f"{found.seconds / 60:.0f} min, {found.tokens:,} tokens: {found.curve[-1][1].line()}")
            keep()
            noticed = time.monotonic()
        if share() >= 1:
            return found
        began, batch = time.monotonic(), next(drawn)
        latest = fit.step(batch, share())
        loss = latest if not loss else 0.95 * loss + 0.05 * latest
        if loss != loss:
            raise LacunaError("the loss is no number any more")
        found.samples += len(batch)
        found.tokens += sum(len(one.ids) for one in batch)
        found.seconds += time.monotonic() - began
        advance(min(round(1000 * share()), 1000) - shown)
        shown = min(round(1000 * share()), 1000)
        if time.monotonic() - noticed > NOTICE_S:
            say(f"{found.seconds / 60:.0f} min, {found.samples:,} samples, {found.tokens:,} tokens, loss {loss:.3f}")
            keep()
            noticed = time.monotonic()


def _dtype(place: torch.device) -> torch.dtype:
    """The precision of the frozen weights: bfloat16 where the processor multiplies it fast."""
    fast = place != HOST or torch.cpu.get_capabilities().get("amx_bf16", False)
    return torch.bfloat16 if fast else torch.float32


def _batches(drawn: Iterator[RowSample], size: int) -> Iterator[list[RowSample]]:
    """Batches of samples of about one length."""
    while group := list(itertools.islice(drawn, 4 * size)):
        group.sort(key=lambda one: len(one.ids))
        for first in range(0, len(group), size):
            yield group[first : first + size]
