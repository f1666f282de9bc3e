"""The denoise loop: one for every model, cache, schedule and constraint; and its runs over the candidates of a request.

The loop denoises the canvases of several candidates side by side, in one batch. They read the same context and never
each other.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Literal

import numpy as np
from msgspec.structs import replace as replace_fields

from lacuna_model.core.constraint import (
    Commit,
    Constraint,
    ConstraintStats,
    GapView,
    Remask,
    TokenText,
    Verdict,
    with_fill,
)
from lacuna_model.core.params import DecodeOptions, Snapshot
from lacuna_model.decode import confidence, schedule
from lacuna_model.decode.candidates import Begins, Fills, forks, likeliest_first
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.decode.reader import CanvasModel, Reader
from lacuna_model.decode.side_by_side import SideBySide, total
from lacuna_model.decode.snapshots import shown, snapshot

# A fork may take any token that was not ruled out; ruled-out tokens are thousands of nats below the best.
POSSIBLE = 50.0
# How often a constraint that admits nothing is asked; it searches further each time.
MAX_DEFERRALS = 16

Outcome = Literal["ok", "no_valid_fill", "deadline", "cancelled"]


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
    witness may take long, and other requests wait for their turn. The next pass is announced before a snapshot is
    yielded.
    """
    try:
        return (yield from _denoised(model, canvases, constraint, tokens, options, cancelled, deadline))
    finally:
        model.withdraw()


def _denoised(
    model: CanvasModel,
    canvases: Sequence[Canvas],
    constraint: Constraint,
    tokens: TokenText,
    options: DecodeOptions,
    cancelled: Callable[[], bool],
    deadline: float | None,
) -> Generator[Snapshot, None, Ending]:
    """As :func:`denoise`, but leaves an announced pass announced."""

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
        with counts.waiting():
            ended = _end_by_rule(constraint, canvases, marginals, proposal, tokens)
        views = [canvas.view(seen) for canvas, seen in zip(canvases, marginals, strict=True)]
        admitted = yield from _ask(
            constraint,
            views,
            [one for one in (*proposal, *edits) if one.gap not in ended],
            counts,
            partial(snapshot, counts, canvases, marginals, tokens),
            lambda: cancelled() or late(),
        )
        if not (admitted or ended):
            if cancelled() or late():
                continue
            break  # there is no witness, and another pass would propose the same: end through ``finish``
        _apply(canvases, marginals, admitted, tokens.eog_id, counts)
        with counts.waiting():
            _end_by_rule(constraint, canvases, marginals, (), tokens)
        counts.steps += 1
        step_in_block += 1
        current = snapshot(counts, canvases, marginals, tokens)
        waiting = [seen is not None and seen.waits for seen in marginals]
        if all(canvas.closed or canvas.is_full or waits for canvas, waits in zip(canvases, waiting, strict=True)):
            _next_block(model, canvases)
            step_in_block = 0
        if not all(canvas.closed for canvas in canvases):
            model.announce(canvases)
        yield current
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


def _end_by_rule(
    constraint: Constraint,
    canvases: Sequence[Canvas],
    marginals: Sequence[Marginals | None],
    proposal: Sequence[Commit],
    tokens: TokenText,
) -> set[int]:
    """Close the fills that their stop rule ends, at the latest within the ``proposal``, and return their gaps.

    A token may hold the end of the fill and the beginning of the suffix: ``!")`` where ``")`` follows the gap. The rule
    ends the fill between them if the constraint confirms it.
    """
    ended = set()
    for gap, (canvas, seen) in enumerate(zip(canvases, marginals, strict=True)):
        if seen is None:
            continue
        slots = {commit.slot: commit.token for commit in proposal if commit.gap == gap}
        run = list(takewhile(slots.__contains__, range(canvas.frontier, len(canvas.slots))))
        fill = canvas.ended(tokens, [slots[slot] for slot in run])
        if fill is not None and constraint.confirms(gap, with_fill(canvas.view(None), fill)):
            for slot in run:
                canvas.remember(slot, slots[slot], seen)
            canvas.end_with(fill)
            ended.add(gap)
    return ended


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


@dataclass(frozen=True, slots=True)
class Attempt:
    """Candidates that are denoised together: the model that reads them, their canvases and constraints."""

    model: Reader
    canvases: Sequence[Canvas]
    constraint: SideBySide


class Candidates:
    """Finds the fills of a request: a first one, and forks of it where several are wanted.

    ``attempt`` makes the model, canvases and constraints for candidates that begin with the given tokens. ``found`` has
    the fills, likeliest first. ``confidence`` maps each to its probability per gap and line, as
    :mod:`lacuna_model.decode.confidence` computes it.
    """

    def __init__(
        self,
        attempt: Callable[[Sequence[Begins]], Attempt],
        num_gaps: int,
        tokens: TokenText,
        options: DecodeOptions,
        wanted: int,
    ) -> None:
        self._attempt = attempt
        self._attempts = [attempt([[()] * num_gaps])]
        self._tokens = tokens
        self._options = options
        self._wanted = wanted
        self.found: list[Fills] = []
        self.confidence: dict[Fills, tuple[tuple[float, ...], ...]] = {}
        self._shown: Snapshot | None = None

    @property
    def passes(self) -> int:
        """The forward passes of all attempts."""
        return sum(attempt.model.passes for attempt in self._attempts)

    @property
    def checks(self) -> ConstraintStats:
        """The summed constraint counters of all attempts."""
        return total(attempt.constraint.stats for attempt in self._attempts)

    @property
    def constrained(self) -> bool:
        """Whether anything is checked at all."""
        return self._attempts[0].constraint.active

    def denoise(self, cancelled: Callable[[], bool], deadline: float | None) -> Generator[Snapshot, None, Ending]:
        """Run the loop, then once more over the forks; if the deadline ends the second run, the first fill is kept."""
        (first,) = self._attempts
        ending = yield from self._turns(first, cancelled, deadline)
        if ending.verdict.fills is not None:
            self.found = [ending.verdict.fills]
        if ending.outcome in ("deadline", "cancelled") or self._wanted == 1:
            return ending
        begins = forks(first.canvases, self._wanted - 1, POSSIBLE, self._tokens.eog_id)
        if not begins:
            return ending
        others = self._attempt(begins)
        self._attempts.append(others)
        forked = yield from self._turns(others, cancelled, deadline)
        ending.counts.steps += forked.counts.steps
        ending.counts.constraint_ms += forked.counts.constraint_ms
        if forked.outcome == "cancelled":
            return forked
        if forked.outcome == "ok":
            found = likeliest_first([*self.found, *others.constraint.found], self._likelihood)
            self.found = found[: self._wanted]
            ending = Ending("ok", Verdict("ok", self.found[0]), ending.counts)
        return ending

    def _likelihood(self, fills: Fills) -> float:
        first = self._attempts[0]
        prefixes = (canvas.gap.prefix.decode() for canvas in first.canvases)
        texts = [prefix + fill for prefix, fill in zip(prefixes, fills, strict=True)]
        return first.model.likelihood([self._tokens.encode(text) for text in texts])

    def _sure(self, fills: Fills, canvases: Sequence[Canvas], candidate: int) -> tuple[tuple[float, ...], ...]:
        own = (canvas for canvas in canvases if canvas.candidate == candidate)
        return tuple(
            confidence.of_lines(fill, canvas.tokens(), canvas.log_probs, canvas.gap.prefix, self._tokens)
            for fill, canvas in zip(fills, own, strict=True)
        )

    def _turns(
        self, attempt: Attempt, cancelled: Callable[[], bool], deadline: float | None
    ) -> Generator[Snapshot, None, Ending]:
        """Run one loop; snapshots show the first candidate, in its final state while the forks are denoised."""
        loop = denoise(
            attempt.model,
            attempt.canvases,
            attempt.constraint,
            self._tokens,
            self._options,
            cancelled=cancelled,
            deadline=deadline,
        )
        left = self._shown

        def show(seen: Snapshot) -> Snapshot:
            waited = seen.constraint_ms + (left.constraint_ms if left else 0.0)
            self._shown = replace_fields(left, step=left.step + seen.step) if left else seen
            checks = self.checks
            return replace_fields(
                self._shown,
                nfe=self.passes,
                vetoes=checks.vetoes,
                deferrals=checks.deferrals,
                constraint_ms=waited,
            )

        with closing(attempt.constraint), closing(loop):
            ending = yield from shown(loop, show)
        for fills, candidate in attempt.constraint.found.items():
            self.confidence.setdefault(fills, self._sure(fills, attempt.canvases, candidate))
        return ending
