"""The command ``masks``: fits the mask rows of a model on the corpus, for a given time, from where it stopped."""

import itertools
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import msgspec
import torch

from lacuna_model.fim.loading import opened
from lacuna_model.fim.preparing import for_gpu, packable, prepared
from lacuna_model.loading.checkpoint import Checkpoint
from lacuna_model.loading.prepared import Preparation
from lacuna_model.network.devices import HOST, choose_device, choose_threads
from lacuna_model.tokenizer import Tokenizer
from training import loop
from training.base import Base, PlainOrder, dense, precision
from training.examples import prompts, texts
from training.feeding import Batch, Sample, ahead, batched, tokens_a_pass
from training.loop import Progress, Run
from training.masks import targets
from training.masks.fitting import RATE, Fit
from training.packages import CorpusError

# Tokens of a batch, and as many rows, on a CPU and on a GPU; prompts that are measured, which takes a CPU minutes.
BATCH, GPU_BATCH = 1024, 8_192
HELD_OUT, GPU_HELD_OUT = 8, 96
GOING_ON = 0.3  # the share of the rate with which trained rows are trained on
# A checkpoint is kept, and the acceptance measured, after so many seconds.
NOTICE_S, MEASURE_S = 300.0, 3600.0
NAME = "masks"


class Trained(loop.Trained):
    """What the training has done so far, and the share of drafts that are ``accepted`` in each slot."""

    accepted: list[float] = msgspec.field(default_factory=list)

    def line(self, loss: float) -> str:
        """One line about it."""
        so_far = f"{self.seconds / 60:.0f} min, {self.tokens:,} tokens, {self.rows:,} rows, loss {loss:.3f}"
        if not self.accepted:
            return so_far
        accepted = " ".join(f"{one:.1%}" for one in self.accepted)
        return f"{so_far}, accepted {accepted}, {tokens_a_pass(self.accepted):.2f} tokens a pass"


def plain_form(path: Path, *, drafts: bool) -> tuple[Preparation, dict[str, torch.Tensor]]:
    """The weights of the model at a path, as it ``drafts`` or as it fills, in plain order.

    They are in bfloat16 where the kernels in C do not support the model's sizes.
    """
    weights, about = opened(path, Checkpoint(path) if path.is_dir() else None)
    if packable(about.config):
        return about, dict(prepared(weights, about.config, PlainOrder(), drafts=drafts))
    return about, dict(for_gpu(weights, about.config, drafts=drafts))


def train(
    path: Path,
    corpus: Path,
    out: Path,
    *,
    seconds: float = 0.0,
    steps: int = 0,
    device: str = "",
    begin: Path | None = None,
    teacher: Path | None = None,
    both_ways: bool = False,
    seed: int = 0,
    threads: int = 0,
    say: Callable[[str], None] = print,
    advance: Callable[[int], None] = lambda thousandths: None,
) -> Trained:
    """Train the mask rows of the model at ``path`` for ``seconds`` or ``steps``, and write them to the folder ``out``.

    What is in that folder is gone on with, on whatever device; else the mask rows in the file ``begin``. With a
    ``teacher``'s prompts (:mod:`.targets`) its tokens are learnt, else the model's own. Masks attend to those before
    them, or ``both_ways``, some of them to tokens that are given in the places of others. Raises CorpusError where the
    corpus has no texts or a file is of another kind.
    """
    place = choose_device(device)
    torch.set_num_threads(threads or choose_threads())
    run = Run(out, NAME, Trained(), say, advance)
    before = run.done
    about, weights = plain_form(path, drafts=True)
    size, asked = (BATCH, HELD_OUT) if place == HOST else (GPU_BATCH, GPU_HELD_OUT)
    read = _Corpus(corpus, about, size, place)
    held_out = list(read.batches("held_out", 1, asked))
    base = Base(about.config, dense(weights, about.config, place, precision(place)))
    del weights
    rate = RATE if run.state is None and begin is None else RATE * GOING_ON
    fit = Fit(base, rate=rate, seed=seed + before.steps, both_ways=both_ways)
    if run.state is not None:
        fit.go_on(run.state)
    elif begin is not None:
        fit.begin_from(begin)
    measured_s = 0.0

    def keep(now: Progress, *, measured: bool = True) -> None:
        accepted = fit.acceptance(held_out) if measured else run.done.accepted
        done = before.and_then(now, accepted=accepted)
        run.keep(fit.state(), *fit.kept(), done, done.line(now.loss))

    def notice(now: Progress) -> None:
        nonlocal measured_s
        if now.steps > 1:  # the first step is too early
            measured = now.seconds - measured_s > MEASURE_S
            measured_s = now.seconds if measured else measured_s
            keep(now, measured=measured)

    # Other texts than those that were drawn before.
    feed = read.batches("train", seed + before.tokens) if teacher is None else read.of(_taught(teacher))
    try:
        now = loop.train(
            fit.step,
            feed,
            rows=size,
            done=lambda now: run.shown(now.steps / steps if steps else now.seconds / max(seconds, 1e-6)),
            notice=notice,
            every_s=NOTICE_S,
        )
    finally:
        feed.close()
    keep(now)
    return run.done


class _Corpus:
    """Batches of ``size`` tokens of a corpus, on a device."""

    def __init__(self, folder: Path, about: Preparation, size: int, device: torch.device) -> None:
        tokenizer = Tokenizer(about.vocabulary)
        assert tokenizer.fim is not None
        self.size, self._folder, self._device = size, folder, device
        self._tokenizer, self._fim = tokenizer, tokenizer.fim

    def batches(self, split: str, seed: int, count: int | None = None) -> Generator[Batch, None, None]:
        """Batches of ``count`` prompts, or without end."""
        drawn = prompts(self._tokenizer, self._fim, texts(self._folder, split, seed), seed)
        return self.of(map(Sample, itertools.islice(drawn, count)))

    def of(self, samples: Iterator[Sample]) -> Generator[Batch, None, None]:
        """Batches of samples."""
        return ahead(batched(samples, self._fim, self.size), self._device)


def _taught(path: Path) -> Iterator[Sample]:
    """A teacher's prompts, again and again."""
    found = targets.read(path)
    pairs = [Sample(ids.tolist(), greedy.tolist()) for ids, greedy in zip(found.ids, found.greedy, strict=True)]
    if not pairs:
        raise CorpusError(f"{path} has no prompts")
    return itertools.cycle(pairs)
