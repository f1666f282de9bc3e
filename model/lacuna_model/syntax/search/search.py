"""Searches for fills of all gaps that are valid together, from a look at the drafts to a full search of the grammar."""

from collections.abc import Callable, Iterator, Sequence

from lacuna_model.core.constraint import Commit, GapView
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.check.windows import Window
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.region.draft import Fill
from lacuna_model.syntax.search.beam import Effort, Found, joint_search
from lacuna_model.syntax.search.candidates import Candidates
from lacuna_model.syntax.search.in_turn import InTurn, solve_windows
from lacuna_model.syntax.search.queues import Queues
from lacuna_model.syntax.search.verified import Verified
from lacuna_model.syntax.text.minimal_completions import Closer

# How often a first witness is searched for, further each time, and how often of these without the model's tokens.
ATTEMPTS = 4
BARE_ATTEMPTS = 2
LAST_VERIFIES = 400
LAST_SECONDS = 0.3


class Search:
    """Searches for fills of a document's gaps, with the candidates of each gap and the known verdicts."""

    def __init__(self, document: Document | None, judge: Verified, queues: Queues, clock: Clock) -> None:
        self._document = document
        self._judge = judge
        self._queues = queues
        self._clock = clock
        self._left_off: dict[tuple[Window, bool], InTurn] = {}
        self._searched: Sequence[tuple[object, object]] = ()  # the tokens that were committed at the last hard search

    def candidates(
        self,
        gaps: Sequence[GapView],
        proposal: Sequence[Commit],
        gap: int,
        *,
        known: Fill | None,
        bare: bool = False,
    ) -> Candidates:
        """Return a gap's candidates, given the proposal and the fill ``known`` so far; ``bare`` without a draft."""
        if bare:
            return self._queues.bare(gaps[gap], gap)
        own = {commit.slot: commit.token for commit in reversed(proposal) if commit.gap == gap}
        return self._queues.drafts(gaps[gap], gap, own, known)

    def together(
        self,
        gaps: Sequence[GapView],
        proposal: Sequence[Commit],
        held: Sequence[Fill | None],
        effort: Effort,
        *,
        known: Sequence[Fill] | None = None,
        bare: bool = False,
    ) -> Found:
        """Search for fills of all gaps that hold none, beside the fills of the others."""
        queues = {
            gap: self.candidates(gaps, proposal, gap, known=known[gap] if known else None, bare=bare)
            for gap, fill in enumerate(held)
            if fill is None
        }
        return joint_search(queues, held, self._judge, effort)

    def hard(self, gaps: Sequence[GapView], held: list[Fill | None]) -> None:
        """Fill the gaps that hold nothing, one after another, without a draft; put the fills into ``held``.

        Guesses come first, then the grammar, in the whole document. The next call goes on with a search that was broken
        off.
        """

        def queue(gap: int, closer: Callable[[], Closer] | None) -> Candidates:
            return self._queues.bare(gaps[gap], gap, closer)

        committed = [(view.done, view.slots) for view in gaps]
        if committed != self._searched:
            self._searched = committed
            self._left_off.clear()
            solve_windows(self._document, held, queue)
        if None in held:
            if self._judge.widen():
                self._left_off.clear()
            solve_windows(self._document, held, queue, self._left_off)

    def exhaustive(
        self, gaps: Sequence[GapView], *, hard: bool, drafts_only: bool = False
    ) -> Iterator[tuple[bytes, ...]]:
        """Yield all fills that a long search finds, first without drafts; ``hard`` if that was not tried before."""
        for bare in (False,) if drafts_only else (True, False):
            effort = Effort(LAST_VERIFIES // 2 * len(gaps), LAST_SECONDS / 2 * len(gaps), self._clock)
            yield from self._all(gaps, effort, bare=bare, hard=hard and bare)

    def _all(self, gaps: Sequence[GapView], effort: Effort, *, bare: bool, hard: bool) -> Iterator[tuple[bytes, ...]]:
        held: list[Fill | None] = [None] * len(gaps)
        if hard:
            self.hard(gaps, held)
        while not effort.spent:
            found = self.together(gaps, (), held, effort, bare=bare)
            if found.whole is not None:
                yield tuple(fill.text for fill in found.whole)
                held = [None] * len(gaps)  # it was refused, and is not found again
                continue
            solved = [None if gap in found.unsolved else fill for gap, fill in enumerate(found.fills)]
            if None in held and solved.count(None) >= held.count(None):
                return
            held = solved
