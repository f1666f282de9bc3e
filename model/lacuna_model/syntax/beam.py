"""The joint search over the candidates of all gaps: check, blame the gaps near the faults, move those on."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lacuna_model.syntax.candidates import Candidates, Fill
from lacuna_model.syntax.document import Check


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
    """How much a search may spend: ``verifies`` checks, none begun later than ``seconds`` after its start."""

    verifies: int
    seconds: float
    used: int = 0
    started: float = field(default_factory=time.perf_counter)

    @property
    def spent(self) -> bool:
        """Whether no further check may begin."""
        return self.used >= self.verifies or self.late

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() - self.started > self.seconds


def joint_search(
    queues: Mapping[int, Candidates], held: Sequence[Fill | None], verifier: Verifier, effort: Effort
) -> list[Fill] | None:
    """Fills for all gaps that are valid together, or None where the effort or the candidates run out.

    Gaps without a queue keep the fill they hold, and a gap whose queue runs dry goes back to it.
    """
    moving = dict(queues)
    current: list[Fill] = []
    for gap in range(len(held)):
        fill = _next_fill(gap, moving, held)
        if fill is None:
            return None
        current.append(fill)
    while not effort.spent:
        texts = tuple(fill.text for fill in current)
        check = verifier.recall(texts)
        if check is None:
            # the model's own draft, which comes first, deserves the second opinion
            check = verifier.check(texts, thorough=effort.used == 0)
            effort.used += 1
        if check.valid:
            return current
        faults = {gap: offset for gap, offset in reversed(check.faults) if gap in moving}
        for gap, offset in (faults or dict.fromkeys(moving, 0)).items():
            moving[gap].blame(offset)
            fill = _next_fill(gap, moving, held)
            if fill is None:
                return None
            current[gap] = fill
        if not moving and current == list(held):
            return None
    return None


def _next_fill(gap: int, moving: dict[int, Candidates], held: Sequence[Fill | None]) -> Fill | None:
    fill = moving[gap].pop() if gap in moving else None
    if fill is None:
        moving.pop(gap, None)
        fill = held[gap]
    return fill
