"""Several candidates for the same gaps: the first fill, and forks of it that are denoised side by side in one batch.

A fork repeats the first fill up to a place of low confidence, and takes the next best token there. The canvases of
candidate c begin at index ``c * num_gaps``. They read the same context and never each other.
"""

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import Protocol

from msgspec.structs import replace as replace_fields

from lacuna_model.core.constraint import Commit, Constraint, ConstraintStats, GapView, Remask, TokenText, Verdict
from lacuna_model.core.params import DecodeOptions, Snapshot
from lacuna_model.decode import confidence
from lacuna_model.decode.canvas import Canvas
from lacuna_model.decode.denoise import CanvasModel, Ending, denoise, shown

# A fork may take any token that was not ruled out; ruled-out tokens are thousands of nats below the best.
POSSIBLE = 50.0
CALL_SECONDS = 0.5  # for the constraints of all candidates in one call; a running one is not cut short

Fills = tuple[str, ...]
# The first tokens of a candidate's fills, a run of tokens for every gap.
Begins = Sequence[Sequence[int]]


def forks(canvases: Sequence[Canvas], count: int, within: float, eog_id: int) -> list[Begins]:
    """The first tokens of up to ``count`` forks of the finished ``canvases``, those with the likeliest rivals first.

    A rival's log-probability is less than ``within`` nats below that of the token taken. Gaps that do not fork keep
    their fills.
    """
    fills = [[*canvas.tokens(), eog_id] for canvas in canvases]
    rivals = sorted(
        (gap_to_best, gap, place, token)
        for gap, canvas in enumerate(canvases)
        for place, (gap_to_best, token) in canvas.rivals.items()
        if gap_to_best < within and place < len(fills[gap])  # an end may have cut off a slot that was committed ahead
    )
    return [[*fills[:gap], [*fills[gap][:place], token], *fills[gap + 1 :]] for _, gap, place, token in rivals[:count]]


def likeliest_first(found: Iterable[Fills], likelihood: Callable[[Fills], float]) -> list[Fills]:
    """The different fills in ``found``, the likeliest first."""
    different = list(dict.fromkeys(found))
    return sorted(different, key=likelihood, reverse=True) if len(different) > 1 else different


def total(stats: Iterable[ConstraintStats]) -> ConstraintStats:
    """The sums over several constraints."""
    found = ConstraintStats()
    for one in stats:
        for field in fields(ConstraintStats):
            setattr(found, field.name, getattr(found, field.name) + getattr(one, field.name))
    return found


class SideBySide:
    """The constraints of all candidates as one; its verdict is that of the first candidate that found a fill.

    ``found`` maps the fills of all candidates to the first candidate that has them.
    """

    def __init__(self, constraints: Sequence[Constraint], num_gaps: int) -> None:
        self._constraints = constraints
        self._num_gaps = num_gaps
        self._next = 0  # the candidate to be served next
        self.found: dict[Fills, int] = {}

    @property
    def active(self) -> bool:
        """Whether anything is checked at all; all candidates have the same language."""
        return self._constraints[0].active

    @property
    def stats(self) -> ConstraintStats:
        """The sums over all candidates."""
        return total(constraint.stats for constraint in self._constraints)

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        """The commits of each candidate that its own constraint admits.

        Once the constraints have taken ``CALL_SECONDS`` of CPU time, the remaining candidates wait for the next call.
        """
        admitted: list[Commit | Remask] = []
        started = time.thread_time()
        for _ in self._constraints:
            index, self._next = self._next, (self._next + 1) % len(self._constraints)
            first = index * self._num_gaps
            own = [replace(commit, gap=commit.gap - first) for commit in proposal if self._of(commit) == index]
            passed = self._constraints[index].admit(self._views(gaps, index), own) if own else []
            admitted += [replace(commit, gap=commit.gap + first) for commit in passed]
            if time.thread_time() - started > CALL_SECONDS:
                break
        return admitted

    def confirms(self, gap: int, view: GapView) -> bool:
        """Whether the candidate's constraint confirms its gap."""
        return self._constraints[gap // self._num_gaps].confirms(gap % self._num_gaps, view)

    def finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        """The first verdict with fills."""
        verdicts = [
            constraint.finish(self._views(gaps, index), truncate=truncate)
            for index, constraint in enumerate(self._constraints)
        ]
        for index, verdict in enumerate(verdicts):
            if verdict.fills is not None:
                self.found.setdefault(verdict.fills, index)
        return next((verdict for verdict in verdicts if verdict.fills is not None), verdicts[0])

    def close(self) -> None:
        """End the searches of all candidates."""
        for constraint in self._constraints:
            constraint.close()

    def _of(self, commit: Commit) -> int:
        return commit.gap // self._num_gaps

    def _views(self, gaps: Sequence[GapView], index: int) -> Sequence[GapView]:
        return gaps[index * self._num_gaps : (index + 1) * self._num_gaps]


class Reader(CanvasModel, Protocol):
    """A model that reads canvases and scores complete fills."""

    @property
    def passes(self) -> int:
        """The forward passes made so far."""
        ...

    def likelihood(self, fills: Sequence[Sequence[int]]) -> float:
        """Score the fills of all gaps, given as tokens: their log-probability over the square root of their length.

        Without the root, short and empty fills would win; divided by the length itself, long ones would.
        """
        ...


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

        with closing(attempt.constraint):
            ending = yield from shown(loop, show)
        for fills, candidate in attempt.constraint.found.items():
            self.confidence.setdefault(fills, self._sure(fills, attempt.canvases, candidate))
        return ending
