"""The joint search over the candidates of all gaps: check them, and advance the gaps near the faults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lacuna_model.core import work
from lacuna_model.syntax.check.document import Check
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.region.draft import Fill
from lacuna_model.syntax.search.candidates import Candidates

# Checks allowed even if a search is late at once, where parses are slow: without any, a fill would consist of swaps.
LEAST_VERIFIES = 2


class Verifier(Protocol):
    """Checks texts, one per gap, and remembers the results."""

    def recall(self, texts: tuple[bytes, ...]) -> Check | None:
        """Return the known result for these texts, without a parse; None if there is none."""
        ...

    def check(self, texts: tuple[bytes, ...], *, thorough: bool) -> Check:
        """Parse these texts; a ``thorough`` check may also ask the whole document."""
        ...


@dataclass(slots=True)
class Effort:
    """The budget of a search: ``verifies`` checks, and none but the first two begun after ``seconds`` of work.

    They count from the first check, since reading the text around a gap for its first fill serves all further
    searches too. When the ``clock`` of the surrounding call is over, the budget is spent at once.
    """

    verifies: int
    seconds: float
    clock: Clock = field(default_factory=Clock)
    used: int = 0
    until: int | None = None

    @property
    def spent(self) -> bool:
        """Whether no further check may begin."""
        return self.used >= self.verifies or self.clock.over or (self.used >= LEAST_VERIFIES and self.late)

    @property
    def late(self) -> bool:
        """Whether the work is done."""
        return self.clock.over or (self.until is not None and work.reached(self.until))

    def begin(self) -> None:
        """Start counting the work, unless it is counted already."""
        self.until = work.mark(self.seconds) if self.until is None else self.until


@dataclass(frozen=True, slots=True)
class Found:
    """The end of a search: a fill per gap (None where a gap has none), and the gaps that are ``unsolved``."""

    fills: tuple[Fill | None, ...]
    unsolved: frozenset[int] = frozenset()

    @property
    def whole(self) -> list[Fill] | None:
        """The fills, if they are valid together; else None."""
        fills = [fill for fill in self.fills if fill is not None]
        return fills if len(fills) == len(self.fills) and not self.unsolved else None


def joint_search(
    queues: Mapping[int, Candidates], held: Sequence[Fill | None], verifier: Verifier, effort: Effort
) -> Found:
    """Search for fills of all gaps that are valid together, as far as the effort and the candidates go.

    Gaps without a queue keep the fill that they hold, and a gap whose queue runs dry goes back to it.
    """
    moving = dict(queues)
    current = [_next_fill(gap, moving, held, effort) for gap in range(len(held))]
    unsolved = _unfilled(current)
    effort.begin()
    faults = frozenset[int]()
    while not unsolved and not effort.spent:
        fills = [fill for fill in current if fill is not None]
        texts = tuple(fill.text for fill in fills)
        check = verifier.recall(texts)
        if check is None:
            # the model's own draft comes first: it gets a second opinion where no fill is known
            check = verifier.check(texts, thorough=effort.used == 0 and None in held)
            effort.used += 1
        if check.valid:
            return Found(tuple(current))
        faults = frozenset(gap for gap, _ in check.faults)
        if effort.spent:  # further fills would not be checked, and finding them takes as long as a check
            break
        for gap in faults & moving.keys() or [*moving]:
            current[gap] = _next_fill(gap, moving, held, effort)
        unsolved = _unfilled(current)
        if effort.spent or (not moving and current == list(held)):
            unsolved = faults
    if effort.clock.over:  # maybe before these fills were checked
        for gap, queue in moving.items():
            queue.give_back(current[gap])
    return Found(tuple(current), unsolved or faults or frozenset(moving))


def _unfilled(fills: Sequence[Fill | None]) -> frozenset[int]:
    return frozenset(gap for gap, fill in enumerate(fills) if fill is None)


def _next_fill(gap: int, moving: dict[int, Candidates], held: Sequence[Fill | None], effort: Effort) -> Fill | None:
    fill = moving[gap].pop(lambda: effort.late) if gap in moving else None
    if fill is None:
        moving.pop(gap, None)
        fill = held[gap]
    return fill
