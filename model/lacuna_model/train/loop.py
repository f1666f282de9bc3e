"""The training loop of the canvas side: draws samples, steps, reports, checkpoints and resumes."""

import math
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import msgspec
import torch

from lacuna_model.adapter import TrainableCanvas, save_adapter
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.train.checkpoint import load_checkpoint, save_checkpoint
from lacuna_model.train.objective import LossOptions, Score, sample_loss
from lacuna_model.train.samples import Sample, SampleOptions, draw_sample
from lacuna_model.transformer import Transformer


class TrainOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long and how fast to train. ``minutes`` is wall time over all resumed runs together."""

    minutes: float = 60.0
    max_steps: int = 1_000_000_000
    seed: int = 0
    rank: int = 64
    samples_per_step: int = 4
    learning_rate: float = 1e-3
    final_rate: float = 0.1
    warmup_steps: int = 30
    checkpoint_minutes: float = 5.0
    report_steps: int = 10


@dataclass(slots=True)
class Progress:
    """Sums since the last report, and totals over the whole run."""

    step: int = 0
    seconds: float = 0.0
    slots_seen: int = 0
    losses: list[float] = field(default_factory=list)
    masked: int = 0
    correct: int = 0
    masked_nll: float = 0.0
    frontier: int = 0
    frontier_nll: float = 0.0
    base_nll: float = 0.0

    def add(self, score: Score) -> None:
        """Count one sample."""
        self.losses.append(float(score.loss.detach()))
        self.slots_seen += score.masked
        self.masked += score.masked
        self.correct += score.correct
        self.masked_nll += score.masked_nll
        self.frontier += score.frontier
        self.frontier_nll += score.frontier_nll
        self.base_nll += score.base_nll

    def report(self) -> dict[str, float]:
        """Means since the last report, which starts anew."""
        means = {
            "step": self.step,
            "minutes": self.seconds / 60,
            "slots_seen": self.slots_seen,
            "loss": sum(self.losses) / max(len(self.losses), 1),
            "masked_accuracy": self.correct / max(self.masked, 1),
            "masked_nll": self.masked_nll / max(self.masked, 1),
            "frontier_nll": self.frontier_nll / max(self.frontier, 1),
            "base_frontier_nll": self.base_nll / max(self.frontier, 1),
        }
        self.losses = []
        self.masked = self.correct = self.frontier = 0
        self.masked_nll = self.frontier_nll = self.base_nll = 0.0
        return means


class Trainer:
    """Trains a canvas against its frozen base; ``documents`` are texts, drawn from with a seeded order."""

    def __init__(
        self,
        base: Transformer,
        canvas: TrainableCanvas,
        tokenizer: Tokenizer,
        documents: Sequence[str],
        options: TrainOptions,
        *,
        sampling: SampleOptions | None = None,
        loss: LossOptions | None = None,
    ) -> None:
        self.options = options
        self.progress = Progress()
        self._base = base
        self._canvas = canvas
        self._tokenizer = tokenizer
        self._documents = documents
        self._sampling = sampling or SampleOptions()
        self._loss = loss or LossOptions()
        self._optimizer = torch.optim.AdamW(canvas.parameters(), betas=(0.9, 0.95), weight_decay=0.0)
        self._stop = False

    def run(
        self,
        folder: Path,
        report: Callable[[dict[str, float]], None],
        on_checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        """Train until the minutes or steps are used up or a signal asks to stop; checkpoint into ``folder``.

        ``on_checkpoint`` is called behind every one but the last, outside the minutes that count.
        """
        folder.mkdir(parents=True, exist_ok=True)
        previous = {name: signal.signal(name, self._ask_to_stop) for name in (signal.SIGINT, signal.SIGTERM)}
        saved = time.monotonic()
        try:
            while not self._done():
                started = time.monotonic()
                self.step()
                self.progress.seconds += time.monotonic() - started
                if self.progress.step % self.options.report_steps == 0:
                    report(self.progress.report())
                if time.monotonic() - saved > self.options.checkpoint_minutes * 60:
                    self.save(folder)
                    on_checkpoint()
                    saved = time.monotonic()
        finally:
            for name, handler in previous.items():
                signal.signal(name, handler)
            self.save(folder)

    def step(self) -> None:
        """One optimiser step over ``samples_per_step`` samples.

        Every step draws from a generator of its own, so that a resumed run sees what the unbroken one would have.
        """
        rng = random.Random(f"{self.options.seed}/{self.progress.step}")
        self._optimizer.zero_grad()
        for _ in range(self.options.samples_per_step):
            sample = self._draw(rng)
            score = sample_loss(
                self._base, self._canvas, sample, self._loss, self._sampling, self._tokenizer.eog_id, rng
            )
            (score.loss / self.options.samples_per_step).backward()  # type: ignore[no-untyped-call]  # torch's own
            self.progress.add(score)
        for group in self._optimizer.param_groups:
            group["lr"] = self.learning_rate()
        torch.nn.utils.clip_grad_norm_(self._canvas.parameters(), 1.0)
        self._optimizer.step()
        self.progress.step += 1

    def learning_rate(self) -> float:
        """Linear warm-up by steps, then a cosine over the minutes down to ``final_rate``."""
        options = self.options
        warm = min(1.0, (self.progress.step + 1) / options.warmup_steps)
        spent = max(
            min(1.0, self.progress.seconds / (options.minutes * 60)),
            min(1.0, self.progress.step / options.max_steps),
        )
        floor = options.final_rate
        return options.learning_rate * warm * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * spent)))

    def save(self, folder: Path) -> None:
        """Write checkpoint and adapter, each atomically."""
        save_checkpoint(folder / "checkpoint.pt", self._canvas, self._optimizer, self.progress)
        temporary = folder / "adapter.safetensors.part"
        notes = {"slots_seen": str(self.progress.slots_seen), "steps": str(self.progress.step)}
        save_adapter(temporary, self._canvas.learnt(), notes)
        temporary.replace(folder / "adapter.safetensors")

    def resume(self, folder: Path) -> None:
        """Go on from the checkpoint in ``folder``; raises WeightsError where it is damaged or of another shape."""
        self.progress = load_checkpoint(folder / "checkpoint.pt", self._canvas, self._optimizer)

    def _draw(self, rng: random.Random) -> Sample:
        while True:
            text = self._documents[rng.randrange(len(self._documents))]
            sample = draw_sample(text, self._tokenizer, self._sampling, rng)
            if sample is not None:
                return sample

    def _done(self) -> bool:
        options = self.options
        return self._stop or self.progress.step >= options.max_steps or self.progress.seconds >= options.minutes * 60

    def _ask_to_stop(self, signum: int, frame: FrameType | None) -> None:
        self._stop = True
