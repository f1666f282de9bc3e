"""Snapshots: the canvases as a client sees them after a step."""

import math
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Protocol, TypeVar

from lacuna_model.core.constraint import TokenText
from lacuna_model.core.params import SlotView, Snapshot
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.decode.reader import Drafted

Value = TypeVar("Value")


class Counted(Protocol):
    """The loop's counters that a snapshot shows."""

    steps: int
    constraint_ms: float


def snapshot(
    counts: Counted,
    canvases: Sequence[Canvas],
    marginals: Sequence[Marginals | None],
    drafts: Sequence[Sequence[Drafted]],
    tokens: TokenText,
) -> Snapshot:
    """The canvases now: committed tokens, and the best draft of every open slot up to the first that was not read.

    Where no open slot was read, the ``drafts`` follow, which the next pass verifies. The confidence of a token is the
    probability that the model gave it last, that of a draft how likely it holds.
    """
    fills, slots = [], []
    for canvas, seen, draft in zip(canvases, marginals, drafts, strict=True):
        sure = [math.exp(canvas.log_probs.get(place, 0.0)) for place in range(len(canvas.done) + len(canvas.slots))]
        views = [
            SlotView(_text(tokens, token), "committed", one) for token, one in zip(canvas.done, sure, strict=False)
        ]
        ids = list(canvas.done)
        for slot, token in enumerate(canvas.slots):
            if token is not None:
                ids.append(token)
                views.append(SlotView(_text(tokens, token), "committed", sure[len(canvas.done) + slot]))
            elif seen is not None and slot < len(seen.ids) and seen.ids[slot, 0] != tokens.eog_id:
                ids.append(int(seen.ids[slot, 0]))
                views.append(SlotView(_text(tokens, ids[-1]), "draft", math.exp(seen.logp[slot, 0])))
            else:
                break
        if all(view.state == "committed" for view in views):
            ids += [one.token for one in draft if one.token is not None]
            views += map(partial(_drafted, tokens), draft)
        fills.append(tokens.decode_bytes(ids).decode("utf-8", errors="replace"))
        slots.append(tuple(views))
    return Snapshot(counts.steps, tuple(fills), tuple(slots), constraint_ms=counts.constraint_ms)


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
