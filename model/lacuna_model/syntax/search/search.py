"""Searches for fills of all gaps that are valid together, from a glance at the drafts to all that the grammar knows."""

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

# How often a first witness is looked for, each time further, and how often of these without anything of the model's.
ATTEMPTS = 4
BARE_ATTEMPTS = 2
LAST_VERIFIES = 400
LAST_SECONDS = 0.3


class Search:
    """Looks for fills of a document's gaps, with the candidates of each gap and the verdicts that are known."""

    def __init__(self, document: Document | None, judge: Verified, queues: Queues, clock: Clock) -> None:
        self._document = document
        self._judge = judge
        self._queues = queues
        self._clock = clock
        self._left_off: dict[tuple[Window, bool], InTurn] = {}
        self._searched: Sequence[tuple[object, object]] = ()  # what was committed when the grammar was searched last

    def candidates(
        self,
        gaps: Sequence[GapView],
        proposal: Sequence[Commit],
        gap: int,
        *,
        known: Fill | None,
        bare: bool = False,
    ) -> Candidates:
        """A gap's candidates, given what is proposed and the fill that was valid before; ``bare`` without a draft."""
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
        """Fills for all gaps that hold nothing, beside what the others hold."""
        queues = {
            gap: self.candidates(gaps, proposal, gap, known=known[gap] if known else None, bare=bare)
            for gap, fill in enumerate(held)
            if fill is None
        }
        return joint_search(queues, held, self._judge, effort)

    def hard(self, gaps: Sequence[GapView], held: list[Fill | None]) -> None:
        """Fills what holds nothing gap after gap, without a draft: by guesses, then in the whole document by grammar.

        Where time ran out before, this goes on there.
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
        """All that a long search finds, without the drafts at first; ``hard`` where that was not tried before."""
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
