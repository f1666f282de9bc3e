"""Fits the mask rows of a model on the corpus, for a given time, from where it stopped.

They learn what the model itself says after each token of prompts, or a teacher, as a file of its prompts has it.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from lacuna_model.fim.loading import LoadedFim, for_gpu, opened, packable, prepared
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.hub import atomic
from lacuna_model.loading.checkpoint import Checkpoint
from lacuna_model.loading.prepared import Preparation
from lacuna_model.network.devices import HOST, choose_device, choose_threads
from lacuna_model.tokenizer import FimTokens, Tokenizer
from training import loop
from training.base import Base, PlainOrder, dense, precision
from training.feeding import LEAST_TOKENS, Sample, ahead, batched, prompt, tokens_a_pass
from training.fitting import RATE, Fit
from training.loop import Asked, Progress, Run
from training.packages import CorpusError
from training.stored import texts

SAVE_S = 30.0
LOGIT_ROWS = 64


def prompts(tokenizer: Tokenizer, fim: FimTokens, source: Iterator[str], seed: int) -> Iterator[list[int]]:
    """Yields the tokens of prompts of texts, without end."""
    rng = Random(seed)
    for text in source:
        tokens = tokenizer.encode(text)
        if len(tokens) > LEAST_TOKENS:
            yield prompt(tokens, fim, rng)


@torch.inference_mode()
def read(model: LoadedFim, ids: Sequence[int]) -> tuple[Tensor, list[int]]:
    """A model's states [T, H] of a prompt, and the token that it finds likeliest after each of the prompt's."""
    reader = TrackReader(model.layers, model.cache_dtype)
    track = reader.new()
    track.become(ids, 0)
    pieces = []
    while track.unread:
        pieces.append(reader.read([[track]], model.pieces.rows)[track])
    hidden = torch.cat(pieces)
    greedy = torch.cat([reader.logits(rows).argmax(-1) for rows in torch.split(hidden, LOGIT_ROWS)])
    return hidden, greedy.tolist()


def write(path: Path, samples: Sequence[Sample]) -> None:
    """Write prompts with a model's tokens to a file. Raises OSError."""
    kept = {
        "ids": [token for one in samples for token in one.ids],
        "greedy": [token for one in samples for token in one.greedy or ()],
        "lengths": [len(one.ids) for one in samples],
    }
    with atomic.replacing(path) as stream:
        stream.write(save({name: torch.tensor(numbers, dtype=torch.int32) for name, numbers in kept.items()}))


def written(path: Path) -> list[Sample]:
    """The prompts in a file; raises CorpusError where it cannot be read."""
    try:
        kept = load(path.read_bytes())
        parts = (kept[name].split_with_sizes(kept["lengths"].tolist()) for name in ("ids", "greedy"))
        return [Sample(ids.tolist(), greedy.tolist()) for ids, greedy in zip(*parts, strict=True)]
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise CorpusError(f"{path}: the prompts cannot be read: {' '.join(str(error).split())}") from error


def make(
    model: LoadedFim,
    corpus: Path,
    out: Path,
    *,
    split: str,
    count: int,
    seed: int = 0,
    threads: int = 0,
    advance: Callable[[int], None] = lambda done: None,
) -> list[Sample]:
    """Read prompts until the file ``out`` has ``count``, going on from those in it; what an end cuts off is small.

    Raises CorpusError where the corpus has no texts or the file is another one.
    """
    torch.set_num_threads(threads or choose_threads())
    found = written(out) if out.exists() else []
    advance(len(found))
    begun = seed + sum(len(one.ids) for one in found)  # other texts than those that were drawn before
    drawn = prompts(model.tokenizer, model.fim, texts(corpus, split, begun), begun)
    saved = time.monotonic()
    while len(found) < count:
        ids = next(drawn)
        found.append(Sample(ids, read(model, ids)[1]))
        advance(1)
        if time.monotonic() - saved > SAVE_S:
            write(out, found)
            saved = time.monotonic()
    write(out, found)
    return found


# Tokens of a batch, and as many rows, on a CPU and on a GPU; prompts that are measured, which takes a CPU minutes.
BATCH, GPU_BATCH = 1024, 8_192
HELD_OUT, GPU_HELD_OUT = 8, 96
GOING_ON = 0.3  # the share of the rate with which trained rows are trained on
# A checkpoint is kept, and the acceptance measured, after so many seconds.
NOTICE_S, MEASURE_S = 300.0, 3600.0
NAME = "masks"


class Trained(Progress):
    """What the training has done so far, and the share of drafts that are ``accepted`` in each slot."""

    accepted: list[float] = msgspec.field(default_factory=list)

    def line(self) -> str:
        """One line about it."""
        so_far = f"{self.seconds / 60:.0f} min, {self.tokens:,} tokens, {self.rows:,} rows, loss {self.loss:.3f}"
        if not self.accepted:
            return so_far
        accepted = " ".join(f"{one:.1%}" for one in self.accepted)
        return f"{so_far}, accepted {accepted}, {tokens_a_pass(self.accepted):.2f} tokens a pass"


def plain_form(path: Path, *, drafts: bool) -> tuple[Preparation, dict[str, Tensor]]:
    """The weights of the model at a path, as it ``drafts`` or as it fills, in plain order.

    They are in bfloat16 where the kernels in C do not support the model's sizes.
    """
    weights, about = opened(path, Checkpoint(path) if path.is_dir() else None)
    if packable(about.config):
        return about, dict(prepared(weights, about.config, PlainOrder(), drafts=drafts))
    return about, dict(for_gpu(weights, about.config, drafts=drafts))


def opened_base(asked: Asked, *, drafts: bool) -> tuple[Base, Tokenizer, FimTokens]:
    """The model on its device, as it ``drafts`` or as it fills, and its tokens; sets torch's threads."""
    place = choose_device(asked.device)
    torch.set_num_threads(asked.threads or choose_threads())
    about, weights = plain_form(asked.path, drafts=drafts)
    tokenizer = Tokenizer(about.vocabulary)
    assert tokenizer.fim is not None
    return Base(about.config, dense(weights, about.config, place, precision(place))), tokenizer, tokenizer.fim


def train(asked: Asked, begin: Path | None = None, teacher: Path | None = None) -> Trained:
    """Train the mask rows of a model, and write them to the folder that is gone on from; at first, those in ``begin``.

    With a ``teacher``'s prompts (:func:`make`) its tokens are learnt, else the model's own. Raises CorpusError where
    the corpus has no texts or a file is of another kind.
    """
    run = Run(asked, NAME, Trained())
    base, tokenizer, fim = opened_base(asked, drafts=True)
    size, count = (BATCH, HELD_OUT) if base.device == HOST else (GPU_BATCH, GPU_HELD_OUT)

    def drawn(split: str, seed: int) -> Iterator[Sample]:
        return map(Sample, prompts(tokenizer, fim, texts(asked.corpus, split, seed), seed))

    held_out = [one.to(base.device) for one in batched(itertools.islice(drawn("held_out", 1), count), fim, size)]
    rate = RATE if run.state is None and begin is None else RATE * GOING_ON
    done, begun_steps, begun_s = run.done, run.done.steps, run.done.seconds
    fit = Fit(base, rate=rate, seed=asked.seed + begun_steps)
    if run.state is not None:
        fit.go_on(run.state)
    elif begin is not None:
        fit.begin_from(begin)
    measured_s = begun_s

    def keep(*, measured: bool = True) -> None:
        if measured:
            done.accepted = fit.acceptance(held_out)
        run.keep(fit.state(), *fit.kept(), done.line())

    def notice(now: Trained) -> None:
        nonlocal measured_s
        if now.steps > begun_steps + 1:  # the first step is too early
            measured = now.seconds - measured_s > MEASURE_S
            measured_s = now.seconds if measured else measured_s
            keep(measured=measured)

    def share(now: Trained) -> float:
        steps, seconds = now.steps - begun_steps, now.seconds - begun_s
        return run.shown(steps / asked.steps if asked.steps else seconds / max(asked.seconds, 1e-6))

    # Other texts than those that were drawn before.
    learnt = drawn("train", asked.seed + done.tokens) if teacher is None else _taught(teacher)
    with closing(ahead(batched(learnt, fim, size), base.device)) as feed:
        loop.train(fit.step, feed, done, rows=size, done=share, notice=notice, every_s=NOTICE_S)
    keep()
    return done


def _taught(path: Path) -> Iterator[Sample]:
    """A teacher's prompts, again and again."""
    if not (found := written(path)):
        raise CorpusError(f"{path} has no prompts")
    return itertools.cycle(found)
