"""The constraints of several candidates as one, for a loop that denoises the candidates side by side.

The canvases of candidate c begin at index ``c * num_gaps``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from lacuna_model.core import work
from lacuna_model.core.constraint import Commit, Constraint, ConstraintStats, GapView, Remask, Verdict
from lacuna_model.decode.candidates import Fills

CALL_SECONDS = 0.5  # for the constraints of all candidates in one call; a running one is not cut short


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

        Once the constraints have done ``CALL_SECONDS`` of work, the remaining candidates wait for the next call.
        """
        admitted: list[Commit | Remask] = []
        until = work.mark(CALL_SECONDS)
        for _ in self._constraints:
            index, self._next = self._next, (self._next + 1) % len(self._constraints)
            first = index * self._num_gaps
            own = [commit for commit in proposal if self._of(commit) == index]
            own = [replace(commit, gap=commit.gap - first) for commit in own] if first else own
            passed = self._constraints[index].admit(self._views(gaps, index), own) if own else []
            admitted += [replace(commit, gap=commit.gap + first) for commit in passed] if first else passed
            if work.reached(until):
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
