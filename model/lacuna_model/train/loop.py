"""The training loop of the canvas side: draws batches, steps, reports, checkpoints and resumes."""

import math
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import msgspec
import torch

from lacuna_kernels import attention_dtype
from lacuna_model.adapter import TrainableCanvas, save_adapter
from lacuna_model.train.batches import MASKED, BatchSource
from lacuna_model.train.checkpoint import Progress, load_checkpoint, save_checkpoint
from lacuna_model.train.feed import Feed
from lacuna_model.train.objective import LossOptions, Objective, to_device
from lacuna_model.train.throughput import Figures, Meter, step_flops
from lacuna_model.transformer import Transformer

CHECKPOINT = "checkpoint.pt"
ADAPTER = "adapter.safetensors"


class TrainOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long and how fast to train. ``minutes`` is wall time over all resumed runs together.

    The rate warms up, stays, and falls to ``final_rate`` of itself in the last ``decay`` of the run. What comes
    before the fall depends on no clock; where it begins, the steps that are left are planned once and recorded.
    """

    minutes: float = 60.0
    max_steps: int = 1_000_000_000
    seed: int = 0
    rank: int = 64
    batch_size: int = 4
    learning_rate: float = 1e-3
    final_rate: float = 0.05
    warmup_steps: int = 30
    decay: float = 0.25
    checkpoint_minutes: float = 5.0
    report_steps: int = 10
    workers: int = 0
    compile: bool = False
    deterministic: bool = False


class Trainer:
    """Trains a canvas against its frozen base on the batches of a source."""

    def __init__(
        self,
        base: Transformer,
        canvas: TrainableCanvas,
        source: BatchSource,
        options: TrainOptions,
        loss: LossOptions | None = None,
    ) -> None:
        self.options = options
        self.progress = Progress()
        self._canvas = canvas
        self._source = source
        self._device = base.final_norm.device
        on_gpu = self._device.type == "cuda"
        self._objective = Objective(
            base,
            canvas,
            loss or LossOptions(),
            eog_id=source.tokenizer.eog_id,
            dtype=attention_dtype(self._device),
            compiled=options.compile,
        )
        self._optimizer = torch.optim.AdamW(canvas.parameters(), betas=(0.9, 0.95), weight_decay=0.0, fused=on_gpu)
        num_learnt = sum(parameter.numel() for parameter in canvas.parameters() if parameter.ndim == 2)
        flops = step_flops(base.config, source.options, options.batch_size, num_learnt)
        self._meter = Meter(flops, self._device)
        self._stop = False

    def run(
        self, folder: Path, report: Callable[[Figures], None], on_checkpoint: Callable[[], None] = lambda: None
    ) -> None:
        """Train until the minutes or steps are used up or a signal asks to stop; checkpoint into ``folder``.

        ``on_checkpoint`` is called behind every one but the last, outside the minutes that count.
        """
        folder.mkdir(parents=True, exist_ok=True)
        previous = {name: signal.signal(name, self._ask_to_stop) for name in (signal.SIGINT, signal.SIGTERM)}
        try:
            with Feed(self._source, self.progress.step, self.options.workers) as feed:
                mark = saved = time.monotonic()
                self._meter.start(self.progress)
                while self._goes_on():
                    self.step(feed)
                    if self.progress.step % self.options.report_steps == 0:
                        report(self._meter.figures(self.progress))
                    mark, before = time.monotonic(), mark
                    self.progress.seconds += mark - before
                    if mark - saved > self.options.checkpoint_minutes * 60:
                        self.save(folder)
                        self.progress.seconds += time.monotonic() - mark
                        on_checkpoint()
                        mark = saved = time.monotonic()
                        self._meter.start(self.progress)
        finally:
            for name, handler in previous.items():
                signal.signal(name, handler)
            self.save(folder)

    def step(self, feed: Feed) -> None:
        """One optimiser step on the next batch."""
        batch = feed.next()
        rate = self.learning_rate()
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.zero_grad()
        score = self._objective.score(to_device(batch, self._device))
        score.loss.backward()  # type: ignore[no-untyped-call]  # torch's own
        torch.nn.utils.clip_grad_norm_(self._canvas.parameters(), 1.0)
        self._optimizer.step()
        progress = self.progress
        progress.step += 1
        progress.slots_seen += int((batch.kind == MASKED).sum())
        progress.tokens_seen += int((batch.stream[:, : batch.num_context] >= 0).sum())
        self._meter.add(score)

    def learning_rate(self) -> float:
        """The rate of the coming step: linear warm-up, constant, linear fall."""
        options, step = self.options, self.progress.step
        end = self.progress.planned_steps or options.max_steps
        left = min(1.0, max(0.0, (end - step) / max(1.0, end * options.decay)))
        warm = min(1.0, (step + 1) / options.warmup_steps)
        return options.learning_rate * warm * (options.final_rate + (1 - options.final_rate) * left)

    def save(self, folder: Path) -> None:
        """Write checkpoint and adapter, each atomically."""
        save_checkpoint(folder / CHECKPOINT, self._canvas, self._optimizer, self.progress)
        notes = {name: str(getattr(self.progress, name)) for name in ("step", "slots_seen", "tokens_seen")}
        save_adapter(folder / ADAPTER, self._canvas.learnt(), notes)

    def resume(self, folder: Path) -> None:
        """Go on from the checkpoint in ``folder``; raises WeightsError where it is damaged or of another shape."""
        self.progress = load_checkpoint(folder / CHECKPOINT, self._canvas, self._optimizer)

    def _goes_on(self) -> bool:
        """Whether another step is due.

        Once only the share of the minutes that the fall needs is left, the number of steps is fixed; more minutes
        open it again.
        """
        options, progress = self.options, self.progress
        before_fall = 1 - options.decay
        if progress.seconds < options.minutes * 60 * before_fall:
            progress.planned_steps = 0
        elif not progress.planned_steps:
            progress.planned_steps = min(options.max_steps, math.ceil(progress.step / before_fall))
        end = progress.planned_steps or options.max_steps
        return not self._stop and progress.step < end and progress.seconds < options.minutes * 60

    def _ask_to_stop(self, signum: int, frame: FrameType | None) -> None:
        self._stop = True
