"""The loop of a training: steps for a given time, notices, and the folder that it goes on from."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import msgspec
import torch
from torch import Tensor

from lacuna_model.core.errors import LacunaError
from lacuna_model.hub import atomic
from lacuna_model.loading import rows_file
from lacuna_model.loading.rows_file import RowsConfig
from lacuna_model.network.devices import HOST
from training.packages import CorpusError

LEAST_SHARE = 1 / 64
# How much of the mean loss each step's is.
LATEST = 0.05


class Samples(Protocol):
    """Some samples of one step."""

    def __len__(self) -> int: ...

    @property
    def tokens(self) -> int:
        """All tokens, with those that fill them up."""

    def first(self, count: int) -> Self:
        """The first ``count`` samples, at least one."""


S = TypeVar("S", bound=Samples)


class Progress(msgspec.Struct):
    """What a training has done, over all its runs: its ``steps``, the ``samples`` and ``tokens`` read; the ``loss`` of
    late.

    ``rows`` of masks were trained; tokens and rows are counted with those that fill up batches and groups.
    ``share`` of each batch is used: half of it, and so on, where memory runs out.
    """

    seconds: float = 0.0
    steps: int = 0
    samples: int = 0
    tokens: int = 0
    rows: int = 0
    loss: float = 0.0
    share: float = 1.0


Done = TypeVar("Done", bound=Progress)


def train(
    step: Callable[[S, int, float], Tensor],
    batches: Iterator[S],
    found: Done,
    *,
    rows: int = 0,
    done: Callable[[Done], float],
    notice: Callable[[Done], None],
    every_s: float,
) -> None:
    """Train until the share ``done`` of what is to do is 1, and add to what is ``found``.

    A ``step`` is told a batch, the number of ``rows`` of masks and the share that is done; it returns the loss.
    ``notice`` is called after the first step and about every ``every_s`` seconds, which are the only times at which the
    device is waited for. Raises LacunaError where the loss is no number any more.
    """
    began, noticed, first = time.monotonic() - found.seconds, found.seconds, found.steps + 1
    found.share = 1.0
    lately: Tensor | None = None
    while (share := done(found)) < 1:
        whole = next(batches)
        batch, wanted = whole.first(round(len(whole) * found.share)), round(rows * found.share)
        loss: Tensor | None = None
        try:
            loss = step(batch, wanted, share)
        except torch.OutOfMemoryError:
            if found.share <= LEAST_SHARE:
                raise
        if loss is None:  # outside of the handler, whose error holds the memory
            found.share /= 2
            torch.cuda.empty_cache()
            continue
        lately = loss if lately is None else lately.lerp(loss, LATEST)
        found.steps += 1
        found.samples += len(batch)
        found.tokens += batch.tokens
        found.rows += wanted
        found.seconds = time.monotonic() - began
        if found.seconds - noticed >= every_s or found.steps == first:
            noticed = found.seconds
            found.loss = float(lately)
            if found.loss != found.loss:
                raise LacunaError("the loss is no number any more")
            notice(found)
    if lately is not None:
        found.loss = float(lately)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a training is asked for: the model at a ``path``, on a ``corpus``, for so many ``seconds`` or ``steps``.

    The folder ``out`` is gone on from, on whatever device. ``say`` gets lines, ``advance`` thousandths of the training.
    """

    path: Path
    corpus: Path
    out: Path
    seconds: float = 0.0
    steps: int = 0
    device: str = ""
    seed: int = 0
    threads: int = 0
    say: Callable[[str], None] = print
    advance: Callable[[int], None] = lambda thousandths: None


class Run(Generic[Done]):
    """A training in a folder: what is kept there, and what is shown.

    ``NAME.pt`` is the checkpoint and ``NAME.safetensors`` the file that the engine loads. ``done`` is what all runs
    have done so far, and ``state`` what the fit goes on from, None in the first run.
    Raises CorpusError where the checkpoint is of another version.
    """

    def __init__(self, asked: Asked, name: str, nothing: Done) -> None:
        asked.out.mkdir(parents=True, exist_ok=True)
        self._checkpoint, self._rows = asked.out / f"{name}.pt", asked.out / f"{name}.safetensors"
        self._say, self._advance, self._shown = asked.say, asked.advance, 0
        self.done = nothing
        self.state: dict[str, Any] | None = None
        if self._checkpoint.exists():
            kept: dict[str, Any] = torch.load(self._checkpoint, map_location=HOST)
            if missing := {"fit", "progress"} - kept.keys():
                names = ", ".join(sorted(missing))
                raise CorpusError(f"{self._checkpoint}: a checkpoint of another version, without {names}")
            self.done, self.state = msgspec.convert(kept["progress"], type(nothing)), kept["fit"]

    def shown(self, share: float) -> float:
        """The ``share`` of the training that is done, after it was shown."""
        thousandths = min(round(1000 * share), 1000)
        self._advance(thousandths - self._shown)
        self._shown = thousandths
        return share

    def keep(self, state: Mapping[str, Any], config: RowsConfig, tensors: Mapping[str, Tensor], line: str) -> None:
        """Write the ``state`` that a fit goes on from, what is done, and the rows; say a line.

        An interruption leaves the checkpoint before.
        """
        with atomic.replacing(self._checkpoint) as stream:
            torch.save({"fit": state, "progress": msgspec.to_builtins(self.done)}, stream)
        rows_file.write(self._rows, config, tensors)
        self._say(line)
