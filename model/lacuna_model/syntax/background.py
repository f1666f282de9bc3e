"""Runs the searches of a constraint in a thread of its own while the model runs.

A model pass leaves the interpreter free for most of its time. So the first witness is searched for while the context is
encoded, and the next witness during the next pass. The denoise loop waits for the rest.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from lacuna_model.core.constraint import Commit, ConstraintStats, GapView, Remask, Verdict
from lacuna_model.syntax.witness import SyntaxConstraint

_THREADS = ThreadPoolExecutor(4, thread_name_prefix="syntax")


class Background:
    """A constraint that continues its searches in another thread between two calls; its answers are the same.

    That thread also makes the constraint and at once looks for fills of the ``gaps``, before any token is proposed. The
    next call raises any exception of the thread.
    """

    active = True

    def __init__(self, make: Callable[[], SyntaxConstraint], gaps: Sequence[GapView]) -> None:
        self._made: SyntaxConstraint | None = None
        self._closed = False
        self._work: Future[SyntaxConstraint] = _THREADS.submit(self._begin, make, gaps)

    @property
    def stats(self) -> ConstraintStats:
        """The counters of its checks so far."""
        return self._made.stats if self._made is not None else ConstraintStats()

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        """Return the commits that the constraint admits, and start the search for their next witness."""
        constraint = self._work.result()
        admitted = constraint.admit(gaps, proposal)
        self._work = _THREADS.submit(self._follow, constraint)
        return admitted

    def confirms(self, gap: int, view: GapView) -> bool:
        """Whether the constraint confirms a closed fill of a gap."""
        return self._work.result().confirms(gap, view)

    def finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        """The constraint's final verdict."""
        return self._work.result().finish(gaps, truncate=truncate)

    def close(self) -> None:
        """End all searches."""
        self._closed = True
        if self._made is not None:
            self._made.close()

    def _begin(self, make: Callable[[], SyntaxConstraint], gaps: Sequence[GapView]) -> SyntaxConstraint:
        self._made = make()
        if self._closed:
            self._made.close()
        self._made.foresee(gaps)
        return self._made

    def _follow(self, constraint: SyntaxConstraint) -> SyntaxConstraint:
        constraint.follow()
        return constraint
