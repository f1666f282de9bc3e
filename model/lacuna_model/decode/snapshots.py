"""Snapshots: the fills, and the counts of the loop, as a client sees them after a step."""

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from lacuna_model.core.constraint import TokenText
from lacuna_model.core.params import SlotView, Snapshot
from lacuna_model.decode.fill import Drafted, Fill

Value = TypeVar("Value")


@dataclass(slots=True)
class LoopCounts:
    """The loop's counters, and the milliseconds that it waited for the constraint."""

    steps: int = 0
    constraint_ms: float = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Add the time spent inside to ``constraint_ms``."""
        began = time.perf_counter()
        yield
        self.constraint_ms += (time.perf_counter() - began) * 1e3


def snapshot(
    counts: LoopCounts, fills: Sequence[Fill], drafts: Sequence[Sequence[Drafted]], tokens: TokenText
) -> Snapshot:
    """The fills now: their tokens, and behind them what is drafted, without the healed text before the gap.

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
        written, prefix = tokens.decode_bytes([*fill.tokens, *drafted]), fill.gap.prefix
        behind = written[len(prefix) :] if written.startswith(prefix) else b""
        texts.append(behind.decode("utf-8", errors="replace"))
        slots.append(_without((*views, *(_drafted(tokens, one) for one in coming)), prefix.decode()))
    return Snapshot(counts.steps, tuple(texts), tuple(slots), constraint_ms=counts.constraint_ms)


def _without(slots: tuple[SlotView, ...], healed: str) -> tuple[SlotView, ...]:
    """Slots without the ``healed`` text, so that their texts add up to the fill that is shown."""
    left: list[SlotView] = []
    for index, slot in enumerate(slots):
        if not healed:
            return (*left, *slots[index:])
        text = slot.text.removeprefix(healed) if len(slot.text) >= len(healed) else ""
        healed = healed[len(slot.text) :]
        if text:
            left.append(replace(slot, text=text))
    return tuple(left)


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
