"""Trains additions to rows of tokens: those behind the header of an edit, and those of a fill."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

import msgspec
import torch
from torch import Tensor

from lacuna_model.core.context import heal
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import PastChange, Region
from lacuna_model.editing.prompts import EditedPart, header
from lacuna_model.fim.prompt import prompt_head, whole_prompt
from lacuna_model.loading.rows_file import RowsConfig, additions
from lacuna_model.network.devices import HOST
from lacuna_model.text import diff
from lacuna_model.text.lines import indentation
from lacuna_model.tokenizer import FimTokens, Tokenizer
from training import loop
from training.base import HEAD_ROWS, Base, Rows
from training.edits import FOLDER, EditExample
from training.feeding import filled
from training.fitting import RANK, Trainable
from training.loop import Asked, Progress, Run
from training.masks import opened_base
from training.packages import CorpusError
from training.stored import read_structs, texts

Kind = Literal["edit", "infill"]
# Tokens of the prompt before and after the gap: most of a step's time goes to the context. Of the header and the lines.
BEFORE, AFTER, MOST = 128, 64, 192
# What follows is learnt where it writes at most so many tokens; more is not to be foreseen.
WRITTEN = 24
# Packages whose examples are drawn in turns, and examples of each of them.
PACKAGES, EACH = 16, 8
# What is learnt of a token that stands there already, beside another one.
COPIED = 0.1
# Where people ask: at the beginning of a line, within one, and for the rest of a block.
PLACES = {"line": 0.4, "part": 0.3, "block": 0.3}
BLOCK_LINES = 8
# Lines that begin with these are no code, and nobody can foresee them.
COMMENTS = ("#", "//", "/*", "*", "--", '"""')


@dataclass(frozen=True, slots=True)
class RowSample:
    """The tokens ``ids`` of a prompt and its answer: rows from ``first`` on have the addition.

    Tokens from ``answer`` on are learnt, with their ``weights``. ``is_nothing``: the answer ends at once.
    """

    ids: Sequence[int]
    first: int
    answer: int
    weights: Sequence[float]
    is_nothing: bool = False


def samples(
    kind: Kind, corpus: Path, split: str, tokenizer: Tokenizer, fim: FimTokens, seed: int
) -> Iterator[RowSample]:
    """Yields samples of a kind without end; raises CorpusError where the corpus has none."""
    drawn: Iterator[RowSample | None]
    if kind == "edit":
        drawn = (edit(one, tokenizer, fim) for one in edits(corpus, split, seed))
    else:
        rng = Random(seed)
        drawn = (infill(text, tokenizer, fim, rng) for text in texts(corpus, split, seed))
    yield from (one for one in drawn if one is not None)


def edit(one: EditExample, tokenizer: Tokenizer, fim: FimTokens) -> RowSample | None:
    """A next edit; None where the lines have no part that is rewritten, or too many tokens."""
    before, standing = one.prefix + one.new, one.standing
    start = len(before.encode())
    try:
        part = EditedPart.of((before + standing + one.suffix).encode(), Region(start, start + len(standing.encode())))
        draft = part.draft(tokenizer)
    except RequestError:
        return None
    if not one.updated.startswith(part.before) or not one.updated.endswith(part.after):
        return None
    changed = part.indentation[-1:] + one.updated[len(part.before) : len(one.updated) - len(part.after)]
    written = [*tokenizer.encode(changed), _end(fim)] if one.follows else [_end(fim)]
    counts = (count for count in range(len(written)) if diff.rejoined(draft, written[:count]) is not None)
    written = written[: next(counts, len(written))]
    weights = _weights(draft, written)
    context = _context(tokenizer, fim, tokenizer.encode(before), standing + one.suffix)
    own = header(tokenizer, fim, PastChange(one.path, one.old, one.new), part.indentation[:-1])
    if len(own) + len(written) > MOST or sum(weight == 1.0 for weight in weights[:-1]) > WRITTEN:
        return None
    # Whether something is to do counts alike in all samples, and as much as what it is.
    whether, what = weights[0], weights[1:]
    shares = [whether, *(weight / sum(what) for weight in what)]
    return RowSample([*context, *own, *written], len(context), len(context) + len(own), shares, not one.follows)


def infill(text: str, tokenizer: Tokenizer, fim: FimTokens, rng: Random) -> RowSample | None:
    """A fill of a random place of a text, which begins with what serving gives back of the text before it.

    None where the place has nothing to fill, a comment, or too many tokens.
    """
    lines = text.splitlines(keepends=True)
    row = rng.randrange(len(lines))
    if not (line := lines[row]).strip() or line.lstrip().startswith(COMMENTS):
        return None
    (place,) = rng.choices(list(PLACES), list(PLACES.values()))
    lead, body = len(indentation(line)), line.rstrip("\n")
    column, wanted = lead, body[lead:]
    if place == "part":
        column = rng.randrange(lead, len(body))
        wanted = body[column:]
    elif place == "block":
        wanted = "".join([line[lead:], *_block(lines, row)]).rstrip("\n")
    before = "".join(lines[max(row - 60, 0) : row]) + line[:column]
    at = len("".join(lines[:row])) + column
    after = text[at + len(wanted) :][: AFTER * 8]
    known, healed = heal(before, tokenizer)
    written = tokenizer.encode(healed.decode() + wanted)
    if len(written) > MOST:
        return None
    context = _context(tokenizer, fim, known, after)
    ids = [*context, *written, _end(fim)]
    return RowSample(ids, len(context) - 1, len(context), [1.0] * (len(written) + 1))


def _block(lines: Sequence[str], row: int) -> list[str]:
    """The lines behind one that are as far indented, a few at most."""
    found = []
    for line in lines[row + 1 : row + BLOCK_LINES]:
        if line.strip() and len(indentation(line)) < len(indentation(lines[row])):
            break
        found.append(line)
    return found


def _context(tokenizer: Tokenizer, fim: FimTokens, before: Sequence[int], after: str) -> list[int]:
    """The prompt of a fill between the tokens ``before`` and a text, of which the nearest tokens are read."""
    head = prompt_head(fim, tokenizer, (), "")
    return whole_prompt(fim, head, before[-BEFORE:], tokenizer.encode(after)[:AFTER])


def _end(fim: FimTokens) -> int:
    return min(fim.ends)


def _weights(old: Sequence[int], new: Sequence[int]) -> list[float]:
    """The weight of each new token: the first says whether something is to do, and most others stand there.

    The first that differs from the old ones says where, also if it stands further below.
    """
    found = [1.0] * len(new)
    for _, place in diff.pairs(old, new):
        found[place] = COPIED if place else 1.0
    found[min(diff.num_common(old, new), len(new) - 1)] = 1.0
    return found


def edits(corpus: Path, split: str, seed: int) -> Iterator[EditExample]:
    """Yields examples of edits without end, of several packages in turns; raises CorpusError where there are none."""
    paths = sorted((corpus / FOLDER / split).glob("*.jsonl.zst"))
    if not paths:
        raise CorpusError(f"{corpus}: no {split} edits; `python -m training edits` makes them")
    rng = Random(seed)
    while True:
        rng.shuffle(paths)
        for first in range(0, len(paths), PACKAGES):
            drawn = list[EditExample]()
            for path in paths[first : first + PACKAGES]:
                every = list(read_structs(path, EditExample))
                drawn += rng.sample(every, min(EACH, len(every)))
            rng.shuffle(drawn)
            yield from drawn


# Samples of a step, on a CPU and on a GPU; samples that are measured.
BATCH, GPU_BATCH = 4, 32
HELD_OUT = 96
# Batches that are drawn at once, so that the samples of each have about as many rows.
TOGETHER = 16
NOTICE_S = 120.0
# The rank of the file, half of the trained one: the 1.5B's rows of fills lose 0.003 nats by it.
KEPT_RANK = 16
# Of the steps; with 3e-4 fills are 0.07 nats worse after two minutes. An edit's form is new to a model.
RATES: Mapping[Kind, float] = {"infill": 1e-4, "edit": 3e-4}
# The held-out samples are measured at these shares of the time.
MARKS = (0.0, 1 / 3, 2 / 3, 1.0)


class Measured(msgspec.Struct):
    """Held-out answers: how many, and the loss of a learnt token (nats).

    ``right`` answers are right to the end, and ``written`` are those of which something is to write, and that is right.
    ``begun`` of these are begun, and ``silent`` of those with ``nothing`` to do are silent.
    """

    answers: int = 0
    written: int = 0
    right: int = 0
    nothing: int = 0
    silent: int = 0
    begun: int = 0
    loss: float = 0.0

    def line(self) -> str:
        """One line about it."""
        some = self.answers - self.nothing
        return (
            f"{self.right} of {self.answers} answers right ({self.written} without their ends), "
            f"{self.begun} of {some} begun, "
            f"{self.silent} of {self.nothing} silent, loss {self.loss:.3f}"
        )


class Batch(list[RowSample]):
    """Samples with about as many rows."""

    @property
    def tokens(self) -> int:
        """The tokens of all samples."""
        return sum(len(one.ids) for one in self)

    def first(self, count: int) -> "Batch":
        """The first ``count`` samples, at least one."""
        return Batch(self[: max(count, 1)])


@dataclass(frozen=True, slots=True)
class _Tensors:
    """P samples of at most R rows: the contexts' ``ids`` [P, T], and of each row its token ``own``, the ``wanted`` next
    one and its ``weight`` [P, R].
    """

    ids: Tensor
    rows: Rows
    own: Tensor
    wanted: Tensor
    weight: Tensor


class RowsFit(Trainable):
    """Fits one kind of additions."""

    def __init__(self, base: Base, kind: Kind, *, rank: int = RANK, rate: float = 0.0, seed: int = 0) -> None:
        config = base.config
        super().__init__(
            base, RowsConfig(config.hidden_size, config.num_layers, 1, rank, kind), rate or RATES[kind], seed
        )

    @torch.no_grad()
    def kept(self) -> tuple[RowsConfig, dict[str, Tensor]]:
        """Each product of additions by the nearest one of rank ``KEPT_RANK`` (its largest singular values)."""
        found = dict[str, Tensor]()
        for name in additions(self._base.config, self.config.rank):
            if name.endswith(".low"):
                high = f"{name[:-3]}high"
                found[name], found[high] = nearest(self.tensors[name], self.tensors[high], KEPT_RANK)
        return msgspec.structs.replace(self.config, rank=min(KEPT_RANK, self.config.rank)), found

    def step(self, samples: Sequence[RowSample], done: float) -> Tensor:
        """Train on some samples; ``done`` is the share of the training that has passed. Returns the mean loss."""
        batch = self._batch(samples)
        hidden = self._base.followed(batch.own, self.tensors, batch.rows, self._base.read(batch.ids))
        gradient, loss = self._scored(hidden.detach(), batch)
        self._update(hidden, gradient, done)
        return loss

    @torch.no_grad()
    def measure(self, batches: Iterable[Sequence[RowSample]], ends: Collection[int]) -> Measured:
        """What becomes of held-out answers: one is right where each of its tokens is the likeliest, and an end follows.

        Any of the tokens ``ends`` is one: the model itself may end a fill with another than the one that is learnt.
        """
        found, losses = Measured(), 0.0
        for some in batches:
            batch = self._batch(some)
            hidden = self._base.followed(batch.own, self.tensors, batch.rows, self._base.read(batch.ids))
            said = self._base.likeliest(hidden.flatten(0, 1)).view(hidden.shape[:2])
            losses += float(self._scored(hidden, batch)[1]) * len(some)
            for index, one in enumerate(some):
                begin = one.answer - one.first - 1
                said_of, wanted = said[index, begin:].tolist(), list(one.ids[one.answer :])
                is_ended = said_of[len(wanted) - 1] in ends
                is_written = said_of[: len(wanted) - 1] == wanted[:-1]
                found.answers += 1
                found.written += is_written and not one.is_nothing
                found.right += is_written and (is_ended or said_of[len(wanted) - 1] == wanted[-1])
                found.nothing += one.is_nothing
                found.silent += one.is_nothing and said_of[0] in ends
                found.begun += not one.is_nothing and said_of[0] not in ends
        found.loss = losses / max(found.answers, 1)
        return found

    def _batch(self, samples: Sequence[RowSample]) -> _Tensors:
        behind = [torch.tensor(one.ids[one.first :]) for one in samples]
        weights = [torch.tensor([0.0] * (one.answer - one.first - 1) + [*one.weights]) for one in samples]
        anchors = [torch.full((len(ids) - 1,), one.first - 1) for one, ids in zip(samples, behind, strict=True)]
        parts = (
            filled([torch.tensor(one.ids[: one.first]) for one in samples], 0, 1),
            filled(anchors, -1, 8),
            filled([torch.arange(1, len(ids)) for ids in behind], 0, 8),
            filled([ids[:-1] for ids in behind], 0, 8),
            filled([ids[1:] for ids in behind], 0, 8),
            filled(weights, 0, 8),
        )
        ids, anchor, slot, own, wanted, weight = (part.to(self._base.device) for part in parts)
        rows = Rows(torch.arange(len(samples), device=ids.device), anchor, slot)
        return _Tensors(ids, rows, own, wanted, weight / weight.sum())

    def _scored(self, hidden: Tensor, batch: _Tensors) -> tuple[Tensor, Tensor]:
        """The gradient of the mean loss by the states ``hidden`` [P, R, H], and that loss."""
        weight = batch.weight.flatten()
        parts = torch.split(weight.nonzero()[:, 0], HEAD_ROWS)
        return self._gradient(hidden, batch.wanted.flatten(), weight, parts)


def nearest(low: Tensor, high: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """The pair [rank, in], [out, rank] whose product is nearest to that of ``low`` [R, in] and ``high`` [out, R]."""
    left, small = torch.linalg.qr(high)
    right, other = torch.linalg.qr(low.T)
    turned, sizes, back = torch.linalg.svd(small @ other.T)
    share = sizes[:rank].sqrt()
    return share[:, None] * (back[:rank] @ right.T), (left @ turned[:, :rank]) * share


class Trained(Progress):
    """What the training has done so far, and the ``curve``: the tokens at each mark, and figures."""

    curve: list[tuple[int, Measured]] = msgspec.field(default_factory=list)


def train(asked: Asked, kind: Kind) -> Trained:
    """Fits rows until they were trained for as long as is asked, all runs together.

    Raises CorpusError where the corpus has no samples, or the checkpoint is of another version.
    """
    run = Run(asked, kind, Trained())
    base, tokenizer, fim = opened_base(asked, drafts=False)
    done = run.done
    begun = asked.seed + done.samples  # other samples than those that were drawn before
    fit = RowsFit(base, kind, seed=begun)
    if run.state is not None:
        fit.go_on(run.state)
    size = BATCH if base.device == HOST else GPU_BATCH
    held_out = samples(kind, asked.corpus, "held_out", tokenizer, fim, 1)
    measured_on = list(_batches(itertools.islice(held_out, HELD_OUT), size, 0))
    drawn = _batches(samples(kind, asked.corpus, "train", tokenizer, fim, begun), size, begun)

    def share(now: Trained) -> float:
        return now.samples / (asked.steps * size) if asked.steps else now.seconds / max(asked.seconds, 1e-6)

    def notice(now: Trained) -> None:
        line = f"{now.seconds / 60:.0f} min, {now.samples:,} samples, {now.tokens:,} tokens, loss {now.loss:.3f}"
        if len(now.curve) < len(MARKS) and share(now) >= MARKS[len(now.curve)]:
            measured = fit.measure(measured_on, fim.ends)
            now.curve.append((now.tokens, measured))
            line = f"{now.seconds / 60:.0f} min, {now.tokens:,} tokens: {measured.line()}"
        run.keep(fit.state(), *fit.kept(), line)

    if not done.curve:
        notice(done)
    before = done.steps
    loop.train(
        lambda batch, _, share: fit.step(batch, share),
        drawn,
        done,
        done=lambda now: run.shown(share(now)),
        notice=notice,
        every_s=NOTICE_S,
    )
    if done.steps > before:
        notice(done)
    return done


def _batches(drawn: Iterator[RowSample], size: int, seed: int) -> Iterator[Batch]:
    """Batches of so many samples with about as many rows, in random order."""
    rng = Random(seed)
    while group := list(itertools.islice(drawn, TOGETHER * size)):
        group.sort(key=lambda one: len(one.ids) - one.first)
        batches = [Batch(group[first : first + size]) for first in range(0, len(group), size)]
        rng.shuffle(batches)
        yield from batches
