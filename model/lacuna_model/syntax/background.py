"""Beside the model: the searches of a constraint go on in a thread of their own while the model reads the canvases.

A pass leaves Python to others for most of its time. So the first witness is looked for while the context is encoded,
and the witness of what was let through last while the next pass is made; the loop waits for what is left.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from lacuna_model.core.constraint import Commit, ConstraintStats, GapView, Remask, Verdict
from lacuna_model.syntax.witness import SyntaxConstraint

_THREADS = ThreadPoolExecutor(4, thread_name_prefix="syntax")


class Background:
    """A constraint that works on in another thread between two calls: what it answers is the same.

    It is made there, too, and at once looks for fills of the ``gaps`` as they are before anything is proposed. What
    goes wrong there is raised by the next call.
    """

    active = True

    def __init__(self, make: Callable[[], SyntaxConstraint], gaps: Sequence[GapView]) -> None:
        self._made: SyntaxConstraint | None = None
        self._closed = False
        self._work: Future[SyntaxConstraint] = _THREADS.submit(self._begin, make, gaps)

    @property
    def stats(self) -> ConstraintStats:
        """What came of its checks so far."""
        return self._made.stats if self._made is not None else ConstraintStats()

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        """What the constraint lets through; what that needs a witness for is searched once this has returned."""
        constraint = self._work.result()
        admitted = constraint.admit(gaps, proposal)
        self._work = _THREADS.submit(self._follow, constraint)
        return admitted

    def confirms(self, gap: int, view: GapView) -> bool:
        """Whether a witness holds what is committed in a gap."""
        return self._work.result().confirms(gap, view)

    def finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        """The constraint's last word."""
        return self._work.result().finish(gaps, truncate=truncate)

    def close(self) -> None:
        """Ends what is searched for now."""
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
