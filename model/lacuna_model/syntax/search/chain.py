"""Fills of several gaps from front to back, each completed by the exact test up to the next gap.

A gap may leave any constructs open, since the next one can close them, and may close none that the text
behind it needs. So nearly always the cheapest completion of each gap is right, and few others are tried.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from lacuna_model.core.constraint import Commit, GapView
from lacuna_model.syntax.check.document import nearest
from lacuna_model.syntax.check.windows import Window
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.region.draft import Fill, lay_out
from lacuna_model.syntax.region.gap_text import GapText
from lacuna_model.syntax.search.beam import Effort

MOST_WAYS = 24  # of one gap, and how many of these by the exact test
MOST_EXACT = 18

Complete = Callable[[bytes], Iterator[bytes]]


class Chain:
    """Completes the committed tokens of a window's gaps, from one gap on to the window's last."""

    def __init__(self, gaps: Sequence[GapText], clock: Clock) -> None:
        self._gaps, self._clock = gaps, clock
        self._vain: set[Hashable] = set()
        self._eog = gaps[0].vocabulary.eog_id

    def solve(
        self,
        window: Window,
        views: Sequence[GapView],
        own: Sequence[Commit],
        before: Sequence[Fill],
        effort: Effort,
    ) -> list[Fill] | None:
        """Return fills of a window's gaps that are valid together and hold the ``own`` commits; None for none.

        The first gaps of the window have the fills ``before``. What was tried in vain is not tried again.
        """
        key = window.extent, tuple((view.done, view.slots) for view in views), tuple(own), tuple(before)
        if key in self._vain:
            return None
        overlays: dict[int, dict[int, int]] = {}
        for commit in own:
            overlays.setdefault(commit.gap, {})[commit.slot] = commit.token
        effort.begin()
        found = self._search(window, views, overlays, list(before), effort)
        if found is None and not self._clock.over:
            self._vain.add(key)
        return found

    def _search(
        self,
        window: Window,
        views: Sequence[GapView],
        overlays: Mapping[int, Mapping[int, int]],
        solved: list[Fill],
        effort: Effort,
    ) -> list[Fill] | None:
        """Search depth first. Where a check finds a fault, the gap that is nearest to it takes its next fill."""
        first = len(solved)
        ways = [self._next_ways(window, views, overlays, solved)]
        while ways and not effort.spent:
            fill = next(ways[-1], None)
            if fill is None:
                ways.pop()
                solved = solved[: first + len(ways) - 1]
                continue
            solved = [*solved, fill]
            if len(solved) < len(window.gaps):
                ways.append(self._next_ways(window, views, overlays, solved))
                continue
            effort.used += 1
            texts = [fill.text for fill in solved]
            outcome = window.parse(texts)
            if outcome is not None and not outcome[1]:
                return solved
            faults = nearest(window, texts, outcome[1]) if outcome is not None else []
            blamed = min((gap - window.extent.first for gap, _ in faults), default=len(solved) - 1)
            ways = ways[: max(blamed - first, 0) + 1]
            solved = solved[: first + len(ways) - 1]
        return None

    def _next_ways(
        self, window: Window, views: Sequence[GapView], overlays: Mapping[int, Mapping[int, int]], solved: list[Fill]
    ) -> Iterator[Fill]:
        """The fills of the first gap that is not solved."""
        gap = window.gaps[len(solved)]
        linked = partial(window.linked, [fill.text for fill in solved])
        return islice(self._fills(views[gap], gap, overlays.get(gap, {}), linked), MOST_WAYS)

    def _fills(self, view: GapView, gap: int, overlay: Mapping[int, int], linked: Complete) -> Iterator[Fill]:
        """The fills of one gap after those of the gaps before it, cheapest first."""
        own, draft = self._gaps[gap], lay_out(view, overlay, self._eog)
        if draft is None:
            return
        kept = draft.tokens[: draft.kept]
        closings = iter((b"",))
        if not draft.closed:
            closings = self._closings(own, kept, linked)
        for closing in closings:
            fill = own.fill(kept, closing)
            fits = own.rules.least_tokens <= len(fill.tokens) <= draft.capacity
            if fits and own.begins(fill.tokens) and own.accepts(fill.text):
                yield fill
            if self._clock.over:
                return

    def _closings(self, own: GapText, kept: tuple[int, ...], linked: Complete) -> Iterator[bytes]:
        """Completions by the exact test, and then guesses, which know some rules that the grammar lacks."""
        if own.ends_inside:
            yield own.due(kept)
        yield from islice(own.completed(kept, linked), MOST_EXACT)
        yield from own.completions(kept)
