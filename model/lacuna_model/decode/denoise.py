"""The loop: one for every model and constraint. Draft, verify, take, end.

The fills of several candidates go on side by side, in the same passes. They read the same context and never each other.
"""

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lacuna_model.core.constraint import Constraint, FillSoFar, Run, Taken, TokenText, Verdict
from lacuna_model.core.params import Status
from lacuna_model.decode.fill import Fill, FillStatus, Reader

# After so many seconds of one step other requests have their turn before the next fill has its.
STEP_SECONDS = 0.5


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
    """How the loop ended: the outcome, the verdict that counts, and those of all candidates."""

    outcome: Status
    verdict: Verdict
    verdicts: Sequence[Verdict] = ()


def denoise(
    reader: Reader,
    fills: Sequence[Fill],
    constraints: Sequence[Constraint],
    tokens: TokenText,
    counts: LoopCounts | None = None,
    *,
    deadline: float | None,
) -> Generator[None, None, LoopEnd]:
    """Write ``fills`` step by step, with a pause after each; return the outcome and the verdict.

    ``fills`` are those of all gaps of the first candidate, then those of the next one; each candidate has its own
    constraint. ``counts`` go on from loop to loop. ``deadline`` is a ``time.monotonic`` instant in seconds. The loop
    checks it before every pass, and after every line that is taken. The next pass is announced before a pause; on a
    device that works beside the host it begins before the constraint is asked, as if that takes all that was read.
    """
    try:
        return (yield from _Loop(reader, fills, constraints, tokens, deadline, counts or LoopCounts()).run())
    finally:
        reader.withdraw()


@dataclass(slots=True)
class _Loop:
    reader: Reader
    fills: Sequence[Fill]
    constraints: Sequence[Constraint]
    tokens: TokenText
    deadline: float | None
    counts: LoopCounts

    def run(self) -> Generator[None, None, LoopEnd]:
        """As :func:`denoise`."""
        if any(fill.is_open for fill in self.fills) and not self._is_late():
            yield from self._pausing(self.reader.announcing(self.fills))
        while not all(fill.has_ended for fill in self.fills):
            if self._is_late():
                return self._ended(late=True)
            if not any(fill.is_open for fill in self.fills):
                break  # no token may follow
            runs = self.reader.read(self.fills)
            yield from self._pausing(self.reader.going_ahead(self.fills, runs))
            yield from self._take(runs)
            self._end_by_budget()
            self._give_up()
            self.counts.steps += 1
            if any(fill.is_open for fill in self.fills):
                yield from self._pausing(self.reader.announcing(self.fills))
            yield
        return self._ended(late=False)

    def _pausing(self, preparing: Iterable[None]) -> Iterator[None]:
        """Prepare the next pass; after a pause the request may have no more time."""
        for _ in preparing:
            yield
            if self._is_late():
                return

    def _is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _ended(self, *, late: bool) -> LoopEnd:
        """The verdicts on the fills as they are; the first one with fills counts."""
        with self.counts.waiting():
            verdicts = [one.verdict(self._written(number), late=late) for number, one in enumerate(self.constraints)]
        verdict = next((one for one in verdicts if one.fills is not None), verdicts[0])
        return LoopEnd("deadline" if late else verdict.status, verdict, verdicts)

    def _written(self, candidate: int) -> list[FillSoFar]:
        return [fill.written() for fill in self.fills if fill.candidate == candidate]

    def _take(self, runs: Sequence[Run | None]) -> Iterator[None]:
        """Take what the constraint admits of the runs that a pass has read."""
        began = time.monotonic()
        for fill, run in zip(self.fills, runs, strict=True):
            if run is not None and fill.is_open:
                if time.monotonic() - began > STEP_SECONDS:
                    yield
                    began = time.monotonic()
                self._take_run(fill, run)

    def _take_run(self, fill: Fill, run: Run) -> None:
        """Take what holds of a run, line by line, up to where a stop rule may end the fill."""
        read, place = run.tokens, 0
        while place < len(read) and len(fill.tokens) < fill.most:
            if self._end_by_rule(fill, run.part(place, place + 1)):
                return
            stop = place + 1
            while (
                stop < len(read)
                and b"\n" not in self.tokens.token_bytes(read[stop - 1])
                and not fill.ends(self.tokens, read[place : stop + 1])
            ):
                stop += 1
            whole, part = Taken(len(fill.tokens) + stop - place), run.part(place, stop)
            constraint, written = self.constraints[fill.candidate], self._written(fill.candidate)
            with self.counts.waiting():
                taken = constraint.take(fill.gap.index, written, part)
            fill.apply(taken, part, self.tokens.eog_id)
            if taken != whole and not self._end_by_rule(fill, run.part(0, 0)) and taken.stuck:
                fill.status = FillStatus.STUCK
            if taken != whole or self._is_late():
                return
            place = stop

    def _give_up(self) -> None:
        """Leave the fills of candidates to the verdict where no token may follow in one of them."""
        stuck = {fill.candidate for fill in self.fills if fill.status is FillStatus.STUCK}
        for fill in self.fills:
            if fill.candidate in stuck and fill.is_open:
                fill.status = FillStatus.STUCK

    def _end_by_rule(self, fill: Fill, coming: Run) -> bool:
        """End a fill where its stop rule does, at the latest within the ``coming`` tokens; return whether it did.

        A token may hold the end of the fill and the beginning of the suffix: ``!")`` where ``")`` follows the gap. The
        rule ends the fill between them if the constraint confirms it; else where it would end next.
        """
        for tokens in fill.ends(self.tokens, coming.tokens):
            if self._may_end(fill, tokens):
                first = len(fill.tokens)
                for place, token in enumerate(coming.tokens, first):
                    fill.remember(place, token, coming, first)
                fill.end_with(tokens)
                return True
        return False

    def _end_by_budget(self) -> None:
        """End the fills that have run into their budget, with a last whole statement that the constraint confirms."""
        for fill in self.fills:
            if fill.is_open and len(fill.tokens) >= fill.most:
                fill.status = FillStatus.OUT_OF_BUDGET
            whole = (tokens for tokens in fill.whole(self.tokens) if self._may_end(fill, tokens))
            if (tokens := next(whole, None)) is not None:
                fill.end_with(tokens)

    def _may_end(self, fill: Fill, tokens: Sequence[int]) -> bool:
        with self.counts.waiting():
            ended = FillSoFar(tuple(tokens), fill.most, ended=True, prefix=fill.gap.prefix)
            return self.constraints[fill.candidate].may_end(fill.gap.index, ended)
