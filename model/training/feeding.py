"""Prompts in fill-in-the-middle form, and batches of them, made by a thread while the device works."""

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lacuna_model.tokenizer import FimTokens

# Tokens of a prompt: its prefix, suffix and fill. Engines read windows of about this size.
PREFIX_TOKENS, SUFFIX_TOKENS, FILL_TOKENS = (32, 384), (0, 160), (16, 128)
# A text with fewer tokens gives no prompt.
LEAST_TOKENS = PREFIX_TOKENS[0] + FILL_TOKENS[0]
# Prompts are filled up to a multiple of so many tokens.
STEP = 64


def prompt(tokens: Sequence[int], fim: FimTokens, rng: Random) -> list[int]:
    """A piece of a text's tokens in fill-in-the-middle form, with a random gap and its fill."""
    before, after, fill = (rng.randint(*sizes) for sizes in (PREFIX_TOKENS, SUFFIX_TOKENS, FILL_TOKENS))
    start = rng.randrange(max(len(tokens) - before - fill, 1))
    gap = start + before
    return [
        *fim.start,
        fim.prefix,
        *tokens[start:gap],
        fim.suffix,
        *tokens[gap + fill : gap + fill + after],
        fim.middle,
        *tokens[gap : gap + fill],
    ]


def format_tokens(fim: FimTokens) -> list[int]:
    """The tokens of a prompt that are of its format, and no text."""
    return [fim.prefix, fim.suffix, fim.middle, *fim.start]


def tokens_a_pass(accepted: Sequence[float]) -> float:
    """The tokens that a pass commits with so many slots drafted: its own, and each draft while all before it hold."""
    return 1.0 + sum(math.prod(accepted[: slot + 1]) for slot in range(len(accepted)))


@dataclass(frozen=True, slots=True)
class Sample:
    """The tokens of a prompt; ``greedy`` are a teacher's after each of them, None where the base is its own."""

    ids: Sequence[int]
    greedy: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """P prompts filled up to T tokens: ``ids`` [P, T], and of a teacher or the base the ``greedy`` [P, T] after each.

    ``ordinary`` [P, T] are the tokens of the text, not of the format and not behind the end; ``fill`` [P] is the place
    of the token that begins the fill, which is a place to draft from.
    """

    ids: Tensor
    ordinary: Tensor
    fill: Tensor
    greedy: Tensor | None

    def to(self, device: torch.device) -> "Batch":
        """The same on a device; the copy is not waited for."""
        if device.type == "cuda":
            return self._each(lambda part: part.pin_memory().to(device, non_blocking=True))
        return self._each(lambda part: part.to(device))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tokens(self) -> int:
        """The tokens of all prompts, with those that fill them up."""
        return self.ids.numel()

    def first(self, count: int) -> "Batch":
        """The first ``count`` prompts, at least one."""
        return self._each(lambda part: part[: max(count, 1)])

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        greedy = None if self.greedy is None else change(self.greedy)
        return Batch(change(self.ids), change(self.ordinary), change(self.fill), greedy)

    def anchors(self) -> Tensor:
        """Where drafts may begin [P, T]."""
        places = torch.arange(self.ids.shape[1], device=self.ids.device)
        return self.ordinary | (places == self.fill[:, None])

    def reached(self, greedy: Tensor, masks: int, vocabulary: int) -> Tensor:
        """Whether the j-th of ``masks`` rows behind a place is of use [P, T, masks].

        It is where the text goes on with the ``greedy`` [P, T] tokens, j tokens long, and a head of ``vocabulary``
        outputs can say the next one. All that is said is of use; what follows other words is never drafted.
        """
        sayable = greedy < vocabulary
        agrees = torch.zeros_like(self.ordinary)
        agrees[:, :-1] = (self.ids[:, 1:] == greedy[:, :-1]) & self.ordinary[:, 1:]
        agrees &= sayable
        run = F.pad(agrees, (0, masks - 1)).unfold(1, masks, 1).long().cumprod(-1).bool()
        following = F.pad(sayable, (0, masks)).unfold(1, masks, 1)[:, 1:]
        return run & following & self.anchors()[..., None]


def batched(samples: Iterable[Sample], fim: FimTokens, tokens: int) -> Iterator[Batch]:
    """Batches of about ``tokens`` tokens each, at least one prompt; the last ones may be smaller."""
    own = torch.tensor(format_tokens(fim))
    waiting: dict[tuple[int, bool], list[Sample]] = {}
    for sample in samples:
        length = -(-len(sample.ids) // STEP) * STEP
        kind = (length, sample.greedy is None)
        alike = waiting.setdefault(kind, [])
        alike.append(sample)
        if len(alike) >= max(tokens // length, 1):
            yield _batch(waiting.pop(kind), fim, own)
    yield from (_batch(alike, fim, own) for alike in waiting.values())


def _batch(samples: Sequence[Sample], fim: FimTokens, own: Tensor) -> Batch:
    ids = filled([torch.as_tensor(sample.ids) for sample in samples], fim.middle)
    inside = torch.arange(ids.shape[1]) < torch.tensor([len(sample.ids) for sample in samples])[:, None]
    fill = (ids == fim.middle).int().argmax(1)
    known = [torch.as_tensor(sample.greedy) for sample in samples if sample.greedy is not None]
    return Batch(ids, inside & ~torch.isin(ids, own), fill, filled(known, 0) if known else None)


def filled(parts: list[Tensor], value: int, multiple: int = STEP) -> Tensor:
    """Rows of numbers in one tensor, filled up to a multiple of so many with a value."""
    found = pad_sequence(parts, batch_first=True, padding_value=value)
    return F.pad(found, (0, -found.shape[1] % multiple), value=value)


def ahead(batches: Iterable[Batch], device: torch.device, count: int = 4) -> Generator[Batch, None, None]:
    """The batches on a device; a thread makes up to ``count`` before they are asked for. Its errors are raised here."""
    source = iter(batches)

    def made() -> Batch | None:
        one = next(source, None)
        return None if one is None else one.to(device)

    thread = ThreadPoolExecutor(1)
    try:
        waiting = deque(thread.submit(made) for _ in range(count))
        while (one := waiting.popleft().result()) is not None:
            waiting.append(thread.submit(made))
            yield one
    finally:
        thread.shutdown(cancel_futures=True)
