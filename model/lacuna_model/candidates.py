"""Several candidates for the same gaps, denoised side by side in one batch: each keeps its own constraint.

The canvases of candidate c are those from ``c * num_gaps`` on. They read the same context and never each other; what
makes them differ is their first token, of which each takes the next best.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

from lacuna_model.constraint import Commit, Constraint, ConstraintStats, GapView, Remask, Verdict


class SideBySide:
    """The constraints of all candidates as one; its verdict is that of the likeliest candidate that found a fill.

    Those of the same ``likelihood`` keep their order.
    """

    def __init__(
        self, constraints: Sequence[Constraint], num_gaps: int, likelihood: Callable[[Sequence[str]], float]
    ) -> None:
        self._constraints = constraints
        self._num_gaps = num_gaps
        self._likelihood = likelihood
        self.others: tuple[tuple[str, ...], ...] = ()

    @property
    def active(self) -> bool:
        """Whether anything is checked at all; the candidates share one language."""
        return self._constraints[0].active

    @property
    def stats(self) -> ConstraintStats:
        """The sums over all candidates."""
        total = ConstraintStats()
        for constraint in self._constraints:
            for field in fields(ConstraintStats):
                setattr(total, field.name, getattr(total, field.name) + getattr(constraint.stats, field.name))
        return total

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        """What each candidate's constraint lets through of its own commits."""
        admitted: list[Commit | Remask] = []
        for index, constraint in enumerate(self._constraints):
            first = index * self._num_gaps
            own = [replace(commit, gap=commit.gap - first) for commit in proposal if self._of(commit) == index]
            passed = constraint.admit(self._views(gaps, index), own) if own else []
            admitted += [replace(commit, gap=commit.gap + first) for commit in passed]
        return admitted

    def finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        """The likeliest fills' verdict; those of the others go to ``others``. With no time left the first are taken."""
        verdicts = [
            constraint.finish(self._views(gaps, index), truncate=truncate)
            for index, constraint in enumerate(self._constraints)
        ]
        found = list({verdict.fills: verdict for verdict in verdicts if verdict.fills is not None}.items())
        if not found:
            return verdicts[0]
        if len(found) > 1 and not truncate:
            found.sort(key=lambda entry: self._likelihood(entry[0]), reverse=True)
        self.others = tuple(fills for fills, _ in found[1:])
        return found[0][1]

    def _of(self, commit: Commit) -> int:
        return commit.gap // self._num_gaps

    def _views(self, gaps: Sequence[GapView], index: int) -> Sequence[GapView]:
        return gaps[index * self._num_gaps : (index + 1) * self._num_gaps]
