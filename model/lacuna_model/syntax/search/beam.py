"""The joint search over the candidates of all gaps: check, blame the gaps near the faults, move those on."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lacuna_model.syntax.check.document import Check
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.region.draft import Fill
from lacuna_model.syntax.search.candidates import Candidates

# On a machine so busy that a search is late at once, a fill would else be made of swaps.
LEAST_VERIFIES = 2


class Verifier(Protocol):
    """Checks texts, one per gap, and remembers what it found."""

    def recall(self, texts: tuple[bytes, ...]) -> Check | None:
        """What is known of these texts, at no cost."""
        ...

    def check(self, texts: tuple[bytes, ...], *, thorough: bool) -> Check:
        """Parses these texts."""
        ...


@dataclass(slots=True)
class Effort:
    """How much a search may spend: ``verifies`` checks, none but the first two begun after ``seconds`` of this thread.

    The thread's own time, not the clock's: what else the machine does must not change a result. It begins with the
    first check, since what is read of the text around a gap to make its first fill serves all further searches. Where
    the ``clock`` of the call it is part of is over, it is spent at once.
    """

    verifies: int
    seconds: float
    clock: Clock = field(default_factory=Clock)
    used: int = 0
    started: float | None = None

    @property
    def spent(self) -> bool:
        """Whether no further check may begin."""
        return self.used >= self.verifies or self.clock.over or (self.used >= LEAST_VERIFIES and self.late)

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return self.clock.over or (self.started is not None and time.thread_time() - self.started > self.seconds)

    def begin(self) -> None:
        """From now on time counts, unless it did before."""
        self.started = time.thread_time() if self.started is None else self.started


@dataclass(frozen=True, slots=True)
class Found:
    """Where a search ended: a fill per gap (None where a gap has none), and the gaps that stand in the way."""

    fills: tuple[Fill | None, ...]
    unsolved: frozenset[int] = frozenset()

    @property
    def whole(self) -> list[Fill] | None:
        """The fills, if they are valid together."""
        fills = [fill for fill in self.fills if fill is not None]
        return fills if len(fills) == len(self.fills) and not self.unsolved else None


def joint_search(
    queues: Mapping[int, Candidates], held: Sequence[Fill | None], verifier: Verifier, effort: Effort
) -> Found:
    """Fills for all gaps that are valid together, as far as the effort and the candidates go.

    Gaps without a queue keep the fill they hold, and a gap whose queue runs dry goes back to it.
    """
    moving = dict(queues)
    current = [_next_fill(gap, moving, held, effort) for gap in range(len(held))]
    unsolved = _unfilled(current)
    effort.begin()
    while not unsolved and not effort.spent:
        fills = [fill for fill in current if fill is not None]
        texts = tuple(fill.text for fill in fills)
        check = verifier.recall(texts)
        if check is None:
            # the model's own draft, which comes first, deserves the second opinion where no fill is known
            check = verifier.check(texts, thorough=effort.used == 0 and None in held)
            effort.used += 1
        if check.valid:
            return Found(tuple(current))
        faults = {gap: offset for gap, offset in reversed(check.faults)}
        if effort.spent:  # the next fills would not be checked, and to find them takes as long as a check
            return Found(tuple(current), frozenset(faults))
        blamed = {gap: offset for gap, offset in faults.items() if gap in moving} or dict.fromkeys(moving, 0)
        for gap, offset in blamed.items():
            moving[gap].blame(offset)
            current[gap] = _next_fill(gap, moving, held, effort)
        unsolved = _unfilled(current)
        if effort.spent or (not moving and current == list(held)):
            unsolved = frozenset(faults)
    return Found(tuple(current), unsolved or frozenset(moving))


def _unfilled(fills: Sequence[Fill | None]) -> frozenset[int]:
    return frozenset(gap for gap, fill in enumerate(fills) if fill is None)


def _next_fill(gap: int, moving: dict[int, Candidates], held: Sequence[Fill | None], effort: Effort) -> Fill | None:
    fill = moving[gap].pop(lambda: effort.late) if gap in moving else None
    if fill is None:
        moving.pop(gap, None)
        fill = held[gap]
    return fill
