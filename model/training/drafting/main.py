"""The command ``drafter``: reads code with the base and fits its drafter, for a given time, from where it stopped."""

import math
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from lacuna_model.fim.drafting import drafter_file
from lacuna_model.fim.drafting.drafter_file import embedded, head_rows
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.network.devices import choose_threads
from lacuna_model.network.drafter import DrafterConfig
from training.drafting.training import Buffer, Trainable, acceptance, loss
from training.examples.prompts import tokens_a_pass
from training.examples.reading import Examples, examples
from training.examples.texts import texts
from training.stored import checkpoint

SLOTS = 4
VOCABULARY = 16_384
COUNTED_TEXTS = 2_000  # decide which tokens code uses most
BATCH = 1024
# Tokens that are kept, and those that are read before the first step.
BUFFER_TOKENS = 600_000
FIRST_TOKENS = 20_000
# Anchors trained on for every token that is read. With four, and 250,000 tokens of a few packages, a drafter accepted
# 57 % in the first slot of new prompts of these packages, and 40 % of others: it lacked text, not steps.
ANCHORS_PER_TOKEN = 2
HELD_OUT_PROMPTS = 24
RATE, WARM_UP, LAST_RATE = 1.5e-3, 0.03, 0.05
GOING_ON = 0.6  # the share of the rate with which a trained drafter is trained on
SAVE_S = 300.0
CHECKPOINT, ARTEFACT = "drafter.pt", "drafter.safetensors"
KEPT = {"state", "vocabulary", "optimizer", "progress"}


class Progress(msgspec.Struct):
    """What the training has done so far, over all its runs."""

    seconds: float = 0.0
    tokens: int = 0
    anchors: int = 0
    accepted: list[float] = []


def train(
    model: LoadedFim,
    corpus: Path,
    out: Path,
    *,
    seconds: float = 0.0,
    steps: int = 0,
    inner_size: int,
    seed: int = 0,
    threads: int = 0,
    say: Callable[[str], None] = print,
) -> Progress:
    """Trains for ``seconds`` or ``steps``, resuming what is in the folder ``out``, and writes the result there.

    It trains on the model's device; what another device has trained is resumed.
    Where that folder is empty, training begins from the drafter that ships for the model, if there is one.
    Raises CorpusError where the corpus has no texts.
    """
    torch.set_num_threads(threads or choose_threads())
    out.mkdir(parents=True, exist_ok=True)
    held_out = list(islice(examples(model, texts(corpus, "held_out", 1), 1), HELD_OUT_PROMPTS))
    run = _Run(model, corpus, out, inner_size, seed)
    began = saved = time.monotonic()
    loss_seen, taken = 0.0, 0
    while (done := taken / steps if steps else (time.monotonic() - began) / max(seconds, 1e-6)) < 1:
        loss_seen = 0.98 * loss_seen + 0.02 * run.step(done)
        taken += 1
        now = time.monotonic()
        if now - saved > SAVE_S:
            run.keep(held_out, now - saved)
            saved = now
            say(run.line(loss_seen))
    run.keep(held_out, time.monotonic() - saved)
    say(run.line(loss_seen))
    return run.progress


class _Run:
    """A training run: weights, optimizer, and the prompts read so far."""

    def __init__(self, model: LoadedFim, corpus: Path, out: Path, inner_size: int, seed: int) -> None:
        self._out = out
        self._device = model.layers.final_norm.device
        kept = checkpoint.read(out / CHECKPOINT, KEPT)
        self.progress = Progress() if kept is None else msgspec.convert(kept["progress"], Progress)
        self._source = examples(model, texts(corpus, "train", seed + self.progress.tokens), seed + self.progress.tokens)
        self._generator = torch.Generator().manual_seed(seed + self.progress.anchors)
        self._buffer = Buffer(BUFFER_TOKENS)
        while self._buffer.tokens < FIRST_TOKENS:
            self._read()
        shipped = drafter_file.shipped(model.name) if kept is None else None
        config, begun = DrafterConfig(model.config.hidden_size, inner_size), dict[str, Tensor]()
        if shipped is not None:
            config, begun = drafter_file.stored(shipped, model.config.hidden_size)
        known = begun if kept is None else kept
        vocabulary = known["vocabulary"].long() if known else self._frequent(model, corpus)
        vocabulary = vocabulary.to(self._device)
        self._trained = Trainable(
            config,
            model.layers.final_norm,
            _embedding(model),
            head_rows(model.layers, vocabulary).bfloat16(),
            vocabulary,
        )
        self._optimizer = torch.optim.AdamW(
            self._trained.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01, foreach=True
        )
        if begun:
            self._trained.begin_from(begun)
        if kept is not None:
            self._trained.load_state_dict(kept["state"])
            self._optimizer.load_state_dict(kept["optimizer"])
        self._top_rate = RATE * (GOING_ON if known else 1.0)

    def step(self, done: float) -> float:
        """Reads prompts as needed and takes one step; ``done`` is the share of the run's time that has passed."""
        while self.progress.anchors > self.progress.tokens * ANCHORS_PER_TOKEN:
            self._read()
        rate = self._top_rate * min(1.0, done / WARM_UP + 0.01)
        rate *= LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * done)) / 2
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        batch = self._buffer.batch(BATCH, SLOTS, self._generator)
        with torch.autocast(self._device.type, torch.bfloat16):
            found = loss(self._trained, batch, self._generator)
        self._optimizer.zero_grad()
        found.backward()  # type: ignore[no-untyped-call]  # untyped in torch
        torch.nn.utils.clip_grad_norm_(self._trained.parameters(), 1.0)
        self._optimizer.step()
        self.progress.anchors += len(batch.hidden)
        return float(found.detach())

    def keep(self, held_out: Sequence[Examples], seconds: float) -> None:
        """Measure the acceptance on held-out prompts and save, after so many more ``seconds`` of training."""
        self.progress.seconds += seconds
        with torch.autocast(self._device.type, torch.bfloat16):
            self.progress.accepted = acceptance(self._trained.drafter, held_out, SLOTS)
        self._save()

    def line(self, loss_seen: float) -> str:
        """One line about the training so far."""
        so_far, accepted = self.progress, self.progress.accepted
        return (
            f"{so_far.seconds / 60:.0f} min, {so_far.tokens:,} tokens, {so_far.anchors:,} anchors, "
            f"loss {loss_seen:.3f}, accepted {' '.join(f'{one:.1%}' for one in accepted)}, "
            f"{tokens_a_pass(accepted):.2f} tokens a pass"
        )

    def _save(self) -> None:
        """Write the checkpoint, and the drafter for the engine."""
        checkpoint.write(
            self._out / CHECKPOINT,
            {
                "state": self._trained.state_dict(),
                "vocabulary": self._trained.drafter.vocabulary,
                "optimizer": self._optimizer.state_dict(),
                "progress": msgspec.to_builtins(self.progress),
            },
        )
        drafter_file.write(self._out / ARTEFACT, self._trained.config, self._trained.tensors())

    def _read(self) -> None:
        one = next(self._source)
        self._buffer.add(one)
        self.progress.tokens += len(one.tokens)

    def _frequent(self, model: LoadedFim, corpus: Path) -> Tensor:
        """The tokens that code uses most."""
        counts = torch.zeros(model.config.vocab_size)
        for text in islice(texts(corpus, "train", 2), COUNTED_TEXTS):
            ids = torch.tensor(model.tokenizer.encode(text[:4_000]))
            counts.index_add_(0, ids, torch.ones(len(ids)))
        counts[list(model.fim.ends)] = counts.max()
        return counts.topk(min(VOCABULARY, len(counts))).indices.sort().values


def _embedding(model: LoadedFim) -> Tensor:
    """The base's embedding [V, H] in bfloat16."""
    ids = torch.arange(model.config.vocab_size, device=model.layers.final_norm.device)
    return torch.cat([embedded(model.layers, part).bfloat16() for part in torch.split(ids, 8192)])
