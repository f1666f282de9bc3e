"""The denoise loop: one for every model, cache, schedule and constraint."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

import numpy as np

from lacuna_model.core.constraint import Commit, Constraint, GapView, Remask, TokenText, Verdict
from lacuna_model.core.params import DecodeOptions, SlotState, SlotView, Snapshot
from lacuna_model.decode import schedule
from lacuna_model.decode.canvas import Canvas, Marginals

# How often a constraint that admits nothing is asked; it searches further each time.
MAX_DEFERRALS = 16

Outcome = Literal["ok", "no_valid_fill", "deadline", "cancelled"]


class CanvasModel(Protocol):
    """Reads canvases: one forward pass over the open blocks of all gaps."""

    def read(self, canvases: Sequence[Canvas]) -> list[Marginals | None]:
        """The marginals of every open canvas, drafts of the prior included; None for closed canvases."""
        ...

    def finish_block(self, canvases: Sequence[Canvas]) -> None:
        """Take full blocks into the context before the next block is opened."""
        ...


@dataclass(slots=True)
class Counts:
    """The loop's counters, and the milliseconds that it waited for the constraint."""

    steps: int = 0
    corrections: int = 0
    constraint_ms: float = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Add the time spent inside to ``constraint_ms``."""
        began = time.perf_counter()
        yield
        self.constraint_ms += (time.perf_counter() - began) * 1e3


@dataclass(slots=True)
class Ending:
    """How the loop ended: the outcome, the constraint's verdict and the counts."""

    outcome: Outcome
    verdict: Verdict
    counts: Counts = field(default_factory=Counts)


def denoise(
    model: CanvasModel,
    canvases: Sequence[Canvas],
    constraint: Constraint,
    tokens: TokenText,
    options: DecodeOptions,
    *,
    cancelled: Callable[[], bool],
    deadline: float | None,
) -> Generator[Snapshot, None, Ending]:
    """Fill ``canvases`` step by step, yielding a snapshot after each; return the outcome and the verdict.

    ``deadline`` is a ``time.monotonic`` instant in seconds. The loop checks it and ``cancelled`` before every pass, and
    before it asks a constraint again that admitted nothing. It yields a snapshot then, too: the search for a first
    witness may take long, and other requests wait for their turn.
    """

    def late() -> bool:
        return deadline is not None and time.monotonic() >= deadline

    counts = Counts()
    generator = np.random.default_rng(options.seed)
    step_in_block = 0
    for canvas in canvases:
        canvas.open_block()
    while not all(canvas.closed for canvas in canvases):
        if cancelled():
            return Ending("cancelled", Verdict("ok", None), counts)
        if late():
            return Ending("deadline", _finish(constraint, canvases, counts, truncate=True), counts)
        marginals = _read(model, canvases, options, generator)
        steps_left = max(options.steps - step_in_block, 1)
        proposal = schedule.propose(canvases, marginals, options, steps_left)
        edits = schedule.corrections(canvases, marginals, options.corrections - counts.corrections, tokens.eog_id)
        views = [canvas.view(seen) for canvas, seen in zip(canvases, marginals, strict=True)]
        admitted = yield from _ask(
            constraint,
            views,
            [*proposal, *edits],
            counts,
            partial(snapshot, counts, canvases, marginals, tokens),
            lambda: cancelled() or late(),
        )
        if not admitted:
            if cancelled() or late():
                continue
            break  # there is no witness, and another pass would propose the same: end through ``finish``
        _apply(canvases, marginals, admitted, tokens.eog_id, counts)
        with counts.waiting():
            for gap, canvas in enumerate(canvases):
                canvas.close_by_rule(tokens, partial(_is_confirmed, constraint, canvas, gap))
        counts.steps += 1
        step_in_block += 1
        yield snapshot(counts, canvases, marginals, tokens)
        waiting = [seen is not None and seen.waits for seen in marginals]
        if all(canvas.closed or canvas.is_full or waits for canvas, waits in zip(canvases, waiting, strict=True)):
            _next_block(model, canvases)
            step_in_block = 0
    verdict = _finish(constraint, canvases, counts, truncate=False)
    return Ending(verdict.status, verdict, counts)


def _read(
    model: CanvasModel, canvases: Sequence[Canvas], options: DecodeOptions, generator: np.random.Generator
) -> list[Marginals | None]:
    """One forward pass: the marginals of every open canvas, drawn at random if there is a temperature."""
    marginals = model.read(canvases)
    if options.temperature <= 0:
        return marginals
    return [
        seen and schedule.draw(seen, canvas.frontier, options.temperature, generator)
        for canvas, seen in zip(canvases, marginals, strict=True)
    ]


def _finish(constraint: Constraint, canvases: Sequence[Canvas], counts: Counts, *, truncate: bool) -> Verdict:
    """The constraint's verdict on the canvases as they are."""
    with counts.waiting():
        return constraint.finish([canvas.view(None) for canvas in canvases], truncate=truncate)


def _ask(
    constraint: Constraint,
    views: Sequence[GapView],
    proposal: Sequence[Commit],
    counts: Counts,
    show: Callable[[], Snapshot],
    is_over: Callable[[], bool],
) -> Generator[Snapshot, None, Sequence[Commit | Remask]]:
    """What the constraint admits of a proposal; it is asked again, a snapshot in between, while it admits nothing."""
    for _ in range(MAX_DEFERRALS):
        with counts.waiting():
            admitted = constraint.admit(views, proposal)
        if admitted:
            return admitted
        yield show()
        if is_over():
            break
    return ()


def shown(
    loop: Generator[Snapshot, None, Ending], show: Callable[[Snapshot], Snapshot]
) -> Generator[Snapshot, None, Ending]:
    """The same loop, with ``show`` applied to its snapshots."""
    while True:
        try:
            seen = next(loop)
        except StopIteration as end:
            ending: Ending = end.value
            return ending
        yield show(seen)


def _apply(
    canvases: Sequence[Canvas],
    marginals: Sequence[Marginals | None],
    admitted: Sequence[Commit | Remask],
    eog_id: int,
    counts: Counts,
) -> None:
    for commit in admitted:
        canvas, seen = canvases[commit.gap], marginals[commit.gap]
        if isinstance(commit, Remask):
            canvas.remask(commit.slot)
        elif canvas.closed or commit.slot >= len(canvas.slots):
            continue  # an end-of-gap of this step has cut the slot off
        elif seen is not None and commit.edit:
            canvas.remember(commit.slot, commit.token, seen)
            canvas.slots[commit.slot] = commit.token
            counts.corrections += 1
        elif seen is not None and canvas.slots[commit.slot] is None:
            canvas.remember(commit.slot, commit.token, seen)
            canvas.commit(commit.slot, commit.token, eog_id, tentative=commit.tentative)


def _is_confirmed(constraint: Constraint, canvas: Canvas, gap: int) -> bool:
    return constraint.confirms(gap, canvas.view(None))


def _next_block(model: CanvasModel, canvases: Sequence[Canvas]) -> None:
    """No block has an open slot: open the next block of the gaps whose block is full, as far as their budget allows."""
    for canvas in canvases:
        if not canvas.closed and canvas.is_full and canvas.budget == 0:
            canvas.closed = True
    going_on = [canvas for canvas in canvases if not canvas.closed and canvas.is_full]
    if going_on:
        model.finish_block(canvases)
        for canvas in going_on:
            canvas.open_block()


def snapshot(
    counts: Counts, canvases: Sequence[Canvas], marginals: Sequence[Marginals | None], tokens: TokenText
) -> Snapshot:
    """The canvases now: committed tokens, and the best draft of every open slot up to the first that was not read.

    The confidence of a token is the probability that the model gave it last.
    """
    fills, slots = [], []
    for canvas, seen in zip(canvases, marginals, strict=True):
        sure = [
            float(np.exp(canvas.log_probs.get(place, 0.0))) for place in range(len(canvas.done) + len(canvas.slots))
        ]
        views = [
            SlotView(_text(tokens, token), "committed", one) for token, one in zip(canvas.done, sure, strict=False)
        ]
        ids = list(canvas.done)
        for slot, token in enumerate(canvas.slots):
            if token is not None:
                ids.append(token)
                state: SlotState = "draft" if slot in canvas.tentative else "committed"
                views.append(SlotView(_text(tokens, token), state, sure[len(canvas.done) + slot]))
            elif seen is not None and slot < len(seen.ids) and seen.ids[slot, 0] != tokens.eog_id:
                ids.append(int(seen.ids[slot, 0]))
                views.append(SlotView(_text(tokens, ids[-1]), "draft", float(np.exp(seen.logp[slot, 0]))))
            else:
                break
        fills.append(tokens.decode_bytes(ids).decode("utf-8", errors="replace"))
        slots.append(tuple(views))
    return Snapshot(
        counts.steps, tuple(fills), tuple(slots), corrections=counts.corrections, constraint_ms=counts.constraint_ms
    )


def _text(tokens: TokenText, token: int) -> str:
    return tokens.token_bytes(token).decode("utf-8", errors="replace")
