"""Snapshots: the fills as a client sees them after a step."""

import math
from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar

from lacuna_model.core.constraint import TokenText
from lacuna_model.core.params import SlotView, Snapshot
from lacuna_model.decode.fill import Fill
from lacuna_model.decode.reader import Drafted

Value = TypeVar("Value")


class Counted(Protocol):
    """The loop's counters that a snapshot shows."""

    steps: int
    constraint_ms: float


def snapshot(
    counts: Counted, fills: Sequence[Fill], drafts: Sequence[Sequence[Drafted]], tokens: TokenText
) -> Snapshot:
    """The fills now: their tokens, and behind them what is drafted.

    The confidence of a token is the probability that the model gave it, that of a draft how likely it holds.
    """
    texts, slots = [], []
    for fill, draft in zip(fills, drafts, strict=True):
        views = [
            SlotView(_text(tokens, token), "committed", math.exp(fill.log_probs.get(place, 0.0)))
            for place, token in enumerate(fill.tokens)
        ]
        coming = draft if fill.is_open else ()
        drafted = [one.token for one in coming if one.token is not None]
        texts.append(tokens.decode_bytes([*fill.tokens, *drafted]).decode("utf-8", errors="replace"))
        slots.append((*views, *(_drafted(tokens, one) for one in coming)))
    return Snapshot(counts.steps, tuple(texts), tuple(slots), constraint_ms=counts.constraint_ms)


def _drafted(tokens: TokenText, one: Drafted) -> SlotView:
    if one.token is None:
        return SlotView("", "mask", 0.0)
    return SlotView(_text(tokens, one.token), "draft", one.probability)


def _text(tokens: TokenText, token: int) -> str:
    return tokens.token_bytes(token).decode("utf-8", errors="replace")


def shown(
    loop: Generator[Snapshot, None, Value], show: Callable[[Snapshot], Snapshot]
) -> Generator[Snapshot, None, Value]:
    """The same generator, with ``show`` applied to its snapshots."""
    while True:
        try:
            seen = next(loop)
        except StopIteration as end:
            value: Value = end.value
            return value
        yield show(seen)
