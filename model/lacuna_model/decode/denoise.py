"""The denoise loop: one for every model, cache, schedule and constraint.

The loop denoises the canvases of several candidates side by side, in one batch. They read the same context and never
each other.
"""

import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal

from lacuna_model.core.constraint import (
    Commit,
    Constraint,
    GapView,
    Remask,
    TokenText,
    Verdict,
    with_fill,
)
from lacuna_model.core.params import DecodeOptions, Snapshot
from lacuna_model.decode import schedule
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.decode.reader import CanvasModel
from lacuna_model.decode.snapshots import snapshot

Outcome = Literal["ok", "no_valid_fill", "deadline", "cancelled"]


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


@dataclass(slots=True)
class LoopEnd:
    """How the loop ended: the outcome, the constraint's verdict and the counts."""

    outcome: Outcome
    verdict: Verdict
    counts: LoopCounts = field(default_factory=LoopCounts)


def denoise(
    model: CanvasModel,
    canvases: Sequence[Canvas],
    constraint: Constraint,
    tokens: TokenText,
    options: DecodeOptions,
    *,
    cancelled: Callable[[], bool],
    deadline: float | None,
) -> Generator[Snapshot, None, LoopEnd]:
    """Fill ``canvases`` step by step, yielding a snapshot after each; return the outcome and the verdict.

    ``deadline`` is a ``time.monotonic`` instant in seconds. The loop checks it and ``cancelled`` before every pass and
    before every question to the constraint but the first one after a pass. The next pass is announced before a snapshot
    is yielded.
    """
    try:
        return (yield from _Loop(model, canvases, constraint, tokens, options, cancelled, deadline).run())
    finally:
        model.withdraw()


@dataclass(slots=True)
class _Loop:
    """One run of the loop; it leaves an announced pass announced."""

    model: CanvasModel
    canvases: Sequence[Canvas]
    constraint: Constraint
    tokens: TokenText
    options: DecodeOptions
    cancelled: Callable[[], bool]
    deadline: float | None
    counts: LoopCounts = field(default_factory=LoopCounts)
    step_in_block: int = 0

    def run(self) -> Generator[Snapshot, None, LoopEnd]:
        """As :func:`denoise`."""
        for canvas in self.canvases:
            canvas.open_block()
        while not all(canvas.closed for canvas in self.canvases):
            if self.cancelled():
                return LoopEnd("cancelled", Verdict("ok", None), self.counts)
            if self._late():
                return LoopEnd("deadline", self._finish(truncate=True), self.counts)
            marginals = _read(self.model, self.canvases, self.options)
            if self._commit(marginals):
                self.counts.steps += 1
                self.step_in_block += 1
                written = [len(canvas.done) for canvas in self.canvases]
                self._go_on(marginals)
                pairs = zip(self.canvases, marginals, written, strict=True)
                yield self._snapshot([seen if len(canvas.done) == before else None for canvas, seen, before in pairs])
            elif not self._over():
                break  # no token may follow, and another pass would propose the same: end through ``finish``
        verdict = self._finish(truncate=False)
        return LoopEnd(verdict.status, verdict, self.counts)

    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _over(self) -> bool:
        return self.cancelled() or self._late()

    def _snapshot(self, marginals: Sequence[Marginals | None]) -> Snapshot:
        drafts = [self.model.drafted(canvas) for canvas in self.canvases]
        return snapshot(self.counts, self.canvases, marginals, drafts, self.tokens)

    def _finish(self, *, truncate: bool) -> Verdict:
        """The constraint's verdict on the canvases as they are."""
        with self.counts.waiting():
            return self.constraint.finish([canvas.view(None) for canvas in self.canvases], truncate=truncate)

    def _go_on(self, marginals: Sequence[Marginals | None]) -> None:
        """Open the next blocks where no open block has an open slot, and announce the next pass."""
        self._end_by_budget()
        waiting = [seen is not None and seen.waits for seen in marginals]
        pairs = zip(self.canvases, waiting, strict=True)
        if all(canvas.closed or canvas.is_full or waits for canvas, waits in pairs):
            _next_block(self.model, self.canvases)
            self.step_in_block = 0
        if not all(canvas.closed for canvas in self.canvases):
            self.model.announce(self.canvases)

    def _commit(self, marginals: Sequence[Marginals | None]) -> bool:
        """Commit what a pass has read; return whether another pass may find more to commit.

        Where the model has read the slots of a gap one after another, their tokens are proposed one after another, each
        as if a pass of its own had read it: so the constraint decides the same whatever was drafted. Once another token
        is committed than the one that was read, the rest is dropped.
        """
        left = {
            gap: self._num_proposals(gap, seen)
            for gap, seen in enumerate(marginals)
            if seen is not None and not (seen.guess and seen.waits)
        }
        while True:
            slots = [canvas.frontier for canvas in self.canvases]
            seen = [one and self._next(canvas, one) for canvas, one in zip(self.canvases, marginals, strict=True)]
            if not self._commit_next(seen, left):
                return any(self._reads_on(gap, one) for gap, one in enumerate(marginals) if gap not in left)
            left = {gap: most - 1 for gap, most in left.items() if most > 1 and self._took(gap, slots[gap], seen[gap])}
            if not left or self._over():
                return True

    def _num_proposals(self, gap: int, seen: Marginals) -> int:
        return 1 if self.canvases[gap].anew or seen.guess or self.options.schedule == "single" else max(seen.exact, 1)

    def _next(self, canvas: Canvas, seen: Marginals) -> Marginals:
        """What is proposed next of a pass."""
        return seen if canvas.anew or seen.guess else seen.before(canvas.frontier + 1)

    def _reads_on(self, gap: int, seen: Marginals | None) -> bool:
        """Whether another pass may find more to commit in a gap."""
        return seen is not None and (seen.guess or not seen.waits) and not self.canvases[gap].closed

    def _took(self, gap: int, slot: int, seen: Marginals | None) -> bool:
        """Whether a gap goes on behind the token that was read for a slot."""
        canvas = self.canvases[gap]
        goes_on = not canvas.closed and not canvas.is_full and canvas.frontier == slot + 1
        return goes_on and seen is not None and canvas.slots[slot] == seen.ids[slot, 0]

    def _commit_next(self, marginals: Sequence[Marginals | None], gaps: Collection[int]) -> bool:
        """Propose tokens for some gaps and commit what the constraint admits; return whether it admitted anything."""
        own = [seen if gap in gaps else None for gap, seen in enumerate(marginals)]
        steps = self.options.steps - self.step_in_block
        proposal = schedule.propose(self.canvases, own, self.options, max(steps, 1))
        ended = self._end_by_rule(own, proposal)
        views = [canvas.view(seen) for canvas, seen in zip(self.canvases, marginals, strict=True)]
        proposal = [one for one in proposal if one.gap not in ended]
        admitted = self._ask(views, proposal) if proposal else ()
        _apply(self.canvases, marginals, admitted, self.tokens.eog_id)
        self._end_by_rule(own, ())
        return bool(admitted or ended)

    def _ask(self, views: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        with self.counts.waiting():
            return self.constraint.admit(views, proposal)

    def _end_by_rule(self, marginals: Sequence[Marginals | None], proposal: Sequence[Commit]) -> set[int]:
        """Close the fills that their stop rule ends, at the latest within the ``proposal``, and return their gaps.

        A token may hold the end of the fill and the beginning of the suffix: ``!")`` where ``")`` follows the gap. The
        rule ends the fill between them if the constraint confirms it; else where it would end next.
        """
        ended = set()
        for gap, (canvas, seen) in enumerate(zip(self.canvases, marginals, strict=True)):
            if seen is None:
                continue
            slots = {commit.slot: commit.token for commit in proposal if commit.gap == gap}
            run = list(takewhile(slots.__contains__, range(canvas.frontier, len(canvas.slots))))
            for fill in canvas.ends(self.tokens, [slots[slot] for slot in run]):
                if self._confirms(gap, with_fill(canvas.view(None), fill)):
                    for slot in run:
                        canvas.remember(slot, slots[slot], seen)
                    canvas.end_with(fill)
                    ended.add(gap)
                    break
        return ended

    def _end_by_budget(self) -> None:
        """Cut fills that have run into their budget back to a last whole statement that the constraint confirms."""
        for gap, canvas in enumerate(self.canvases):
            whole = (one for one in canvas.whole(self.tokens) if self._confirms(gap, with_fill(canvas.view(None), one)))
            if (fill := next(whole, None)) is not None:
                canvas.end_with(fill)

    def _confirms(self, gap: int, view: GapView) -> bool:
        with self.counts.waiting():
            return self.constraint.confirms(gap, view)


def _read(model: CanvasModel, canvases: Sequence[Canvas], options: DecodeOptions) -> list[Marginals | None]:
    """One forward pass: the marginals of every open canvas, drawn at random if there is a temperature.

    A guess is drawn where it is made.
    """
    marginals, temperature = model.read(canvases), options.temperature
    if temperature <= 0:
        return marginals
    return [
        seen
        if seen is None or seen.guess
        else schedule.draw(seen, canvas.frontier, temperature, schedule.noise_of(options.seed, canvas, seen.ids))
        for canvas, seen in zip(canvases, marginals, strict=True)
    ]


def _apply(
    canvases: Sequence[Canvas],
    marginals: Sequence[Marginals | None],
    admitted: Sequence[Commit | Remask],
    eog_id: int,
) -> None:
    for commit in admitted:
        canvas, seen = canvases[commit.gap], marginals[commit.gap]
        if isinstance(commit, Remask):
            canvas.remask(commit.slot)
        elif canvas.closed or commit.slot >= len(canvas.slots):
            continue  # an end-of-gap of this step has cut the slot off
        elif seen is not None and canvas.slots[commit.slot] is None:
            canvas.remember(commit.slot, commit.token, seen)
            canvas.commit(commit.slot, commit.token, eog_id)


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
