"""Complete fills for one gap, cheapest first: the draft, the fill that it had, and completions of its fixed part."""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice

from lacuna_model.syntax.region.draft import Draft, Fill
from lacuna_model.syntax.region.gap_text import GapText

COST_CLOSING = 0.5  # of the first minimal completion, in nats of mean doubt per slot
COST_RANK = 0.12
COST_PLAIN = 0.3  # as much as a few completions, one of which may close the open constructs
MAX_REPAIRS = 4  # beside a known fill: only 3 of 80 later ones were valid
# Fills refused without a parse before a search gives up on a gap: where the budget is small, no completion may fit.
MAX_REFUSED = 100


@dataclass(order=True, slots=True)
class _Entry:
    """A fill to try.

    With ``source`` instead, it stands for the next completion of its prefix, found only when it is needed. With
    ``more``, it stands for a call that queues other entries of at least this cost.
    """

    cost: float
    serial: int
    prefix: tuple[int, ...] = field(compare=False)
    closing: bytes = field(compare=False, default=b"")
    source: Iterator[bytes] | None = field(compare=False, default=None)
    more: Callable[[], None] | None = field(compare=False, default=None)


def _in_turns(*sources: Iterator[bytes]) -> Iterator[bytes]:
    """Yield one item of each source in turn; no source is asked before its turn."""
    waiting = deque(sources)
    while waiting:
        source = waiting.popleft()
        for found in islice(source, 1):
            yield found
            waiting.append(source)


class Candidates:
    """The queue of one gap within one step; ``known`` is a fill that was valid before."""

    def __init__(self, gap: GapText, known: Fill | None = None) -> None:
        self._gap = gap
        self._fill = known
        self._heap: list[_Entry] = []
        self._serial = count()
        self._costs: dict[tuple[tuple[int, ...], bytes], float] = {}
        self._tried: set[bytes] = set()
        self._capacity = 0
        self._given_back: Fill | None = None

    def give_back(self, fill: Fill | None) -> None:
        """Let the next ``pop`` return a fill again, if there is one: it may not have been checked."""
        self._given_back = fill

    def add(self, draft: Draft, *, base: float) -> None:
        """Queue the fills of a draft: the draft itself if it is complete, and its fixed part with completions.

        ``base`` is added to every cost.
        """
        self._capacity = draft.capacity
        if draft.complete:
            self._push(base + min(draft.doubt, 4.0), draft.tokens, b"")
        if not draft.closed:
            self._add_completions(base + COST_CLOSING, draft.tokens[: draft.kept])

    def add_bare(self, draft: Draft | None) -> None:
        """Queue the fixed part of a draft, plain and with completions, and nothing else."""
        if draft is not None:
            kept, self._capacity = draft.tokens[: draft.kept], draft.capacity
            self._push(COST_PLAIN, kept, self._gap.due(kept))
            if not draft.closed:
                self._add_completions(0.0, kept)

    def add_fill(self, tokens: tuple[int, ...], *, base: float) -> None:
        """Queue one complete fill."""
        self._push(base, tokens, b"")

    def add_later(self, more: Callable[[], None], *, base: float) -> None:
        """Call ``more``, which adds entries of at least cost ``base``, once no cheaper entry is left."""
        heapq.heappush(self._heap, _Entry(base, next(self._serial), (), more=more))

    def _add_completions(self, base: float, prefix: tuple[int, ...]) -> None:
        if len(prefix) < self._capacity:
            closings = self._closings(prefix) if self._fill is None else self._renewals(prefix)
            heapq.heappush(self._heap, _Entry(base, next(self._serial), prefix, source=closings))

    def _closings(self, prefix: tuple[int, ...]) -> Iterator[bytes]:
        """Completions, likeliest first: of the grammar, where the other gaps have valid fills, and guesses."""
        if self._gap.ends_inside:
            yield b""
        repairs, guesses = self._gap.repairs(prefix), self._gap.completions(prefix)
        yield from islice(repairs, 1)
        yield from islice(guesses, 1)
        yield from _in_turns(repairs, repairs, guesses)  # each source finds completions that the other does not

    def _renewals(self, prefix: tuple[int, ...]) -> Iterator[bytes]:
        """Completions by the grammar, the completion of the known fill, and guesses, which are valid least often."""
        if self._gap.ends_inside:
            yield b""
        if self._gap.reads(prefix) is False:
            return
        repairs, guesses = islice(self._gap.repairs(prefix), MAX_REPAIRS), self._gap.completions(prefix)
        yield from islice(repairs, 1)
        yield from self._gap.tails(self._fill, prefix)
        yield from islice(repairs, 1)
        yield from islice(guesses, 1)
        yield from repairs
        yield from guesses

    def _push(self, cost: float, prefix: tuple[int, ...], closing: bytes) -> None:
        if self._is_cheapest(cost, prefix, closing):
            heapq.heappush(self._heap, _Entry(cost, next(self._serial), prefix, closing))

    def pop(self, late: Callable[[], bool] = lambda: False) -> Fill | None:
        """Return the cheapest fill that fits and keeps the region's rules; None when none is in reach, or in time.

        A fill whose text was tried before is skipped: after the last line that a region takes, other tokens do not
        change the text.
        """
        if self._given_back is not None:
            fill, self._given_back = self._given_back, None
            return fill
        refused = 0
        while self._heap and refused < MAX_REFUSED and not (refused and late()):
            entry = heapq.heappop(self._heap)
            if entry.more is not None:
                entry.more()
                continue
            if entry.source is not None and not self._draw(entry, entry.source):
                continue
            fill = self._gap.fill(entry.prefix, entry.closing)
            refused += 1
            if not self._gap.rules.least_tokens <= len(fill.tokens) <= self._capacity:
                continue
            if fill.text in self._tried:
                continue
            self._tried.add(fill.text)
            if self._gap.begins(fill.tokens) and self._gap.accepts(fill.text):
                return fill
        return None

    def _draw(self, entry: _Entry, source: Iterator[bytes]) -> bool:
        """Give an entry the next completion of its source, which is queued again; False if that is none or known."""
        closing = next(source, None)
        if closing is None:
            return False
        heapq.heappush(self._heap, _Entry(entry.cost + COST_RANK, next(self._serial), entry.prefix, source=source))
        entry.closing = closing
        return self._is_cheapest(entry.cost, entry.prefix, closing)

    def _is_cheapest(self, cost: float, prefix: tuple[int, ...], closing: bytes) -> bool:
        """Whether this fill is new or cheaper than before; its least cost is remembered."""
        known = self._costs.get((prefix, closing), math.inf)
        self._costs[prefix, closing] = min(cost, known)
        return cost < known
