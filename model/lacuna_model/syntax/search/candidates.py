"""Complete fills for one gap, cheapest first: a best-first queue that learns from the faults that checks find."""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate, count, islice

from lacuna_model.core.constraint import GapView
from lacuna_model.syntax.region.draft import Draft, Fill, ranked_tokens
from lacuna_model.syntax.region.gap_text import GapText

COST_CLOSING = 0.5  # of the first minimal completion, in nats of mean doubt per slot
COST_RANK = 0.12
COST_CUT = 0.3
COST_PLAIN = 0.3  # as much as a few completions, one of which may close the open constructs
COST_SWAP = 0.3
COST_PER_NAT = 0.1
REACH_LEFT = 3
REACH_RIGHT = 1
ALTERNATIVES = 8
MOST_REPAIRS = 4  # beside a known fill: only 3 of 80 later ones were valid
# Fills refused without a parse before a search gives up on a gap: each of them queues a dozen more, and where the
# budget is small no completion may fit.
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
    """The queue of one gap within one step.

    Beside a ``known`` fill, one that was valid before, the kinds that are hardly ever valid then are left out (1 of 500
    checks): completions of text that the grammar cannot read, ends within the draft, and other draft tokens.
    """

    def __init__(self, view: GapView, gap: GapText, known: Fill | None = None) -> None:
        self._view = view
        self._gap = gap
        self._fill = known
        self._heap: list[_Entry] = []
        self._serial = count()
        self._costs: dict[tuple[tuple[int, ...], bytes], float] = {}
        self._current: _Entry | None = None
        self._tried: set[bytes] = set()
        self._free: frozenset[int] = frozenset()
        self._capacity = 0
        self._known: dict[int, list[tuple[int, float]]] = {}

    def add(self, draft: Draft, *, base: float) -> None:
        """Queue the fills of a draft: the draft itself if it is complete, and its fixed part with completions.

        ``base`` is added to every cost.
        """
        self._free, self._capacity = self._free | draft.free, draft.capacity
        if draft.complete:
            self._push(base + min(draft.doubt, 4.0), draft.tokens, b"")
        if draft.closed:
            return
        self._add_completions(base + COST_CLOSING, draft.tokens[: draft.kept])
        if self._fill is not None:
            return
        if len(draft.tokens) > draft.kept and not draft.complete:
            self._add_completions(base + COST_CLOSING + COST_CUT + draft.doubt, draft.tokens, is_drafted=True)
        for end in self._plausible_ends(draft):
            self._push(base + COST_CLOSING + COST_CUT + draft.doubt, draft.tokens[:end], b"")

    def add_fixed(self, draft: Draft, *, base: float) -> None:
        """Queue the fixed part of a draft, with completions unless nothing may follow it."""
        kept, self._capacity = draft.tokens[: draft.kept], draft.capacity
        if draft.closed:
            self._push(base, kept, b"")
        else:
            self._add_completions(base + COST_CLOSING, kept)

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

    def _add_completions(self, base: float, prefix: tuple[int, ...], *, is_drafted: bool = False) -> None:
        if len(prefix) < self._capacity:
            closings = self._closings(prefix, is_drafted=is_drafted) if self._fill is None else self._renewals(prefix)
            heapq.heappush(self._heap, _Entry(base, next(self._serial), prefix, source=closings))

    def _closings(self, prefix: tuple[int, ...], *, is_drafted: bool) -> Iterator[bytes]:
        """Completions, likeliest first: of the grammar, where the other gaps have valid fills, and guesses.

        A drafted prefix is most often wrong somewhere, which takes the grammar long to find out: it gets guesses only.
        """
        if self._gap.ends_inside:
            yield b""
        repairs = self._gap.repairs(prefix) if not is_drafted else iter(())
        guesses = self._gap.completions(prefix)
        yield from islice(repairs, 1)
        yield from islice(guesses, 1)
        yield from _in_turns(repairs, repairs, guesses)  # each source finds completions that the other does not

    def _renewals(self, prefix: tuple[int, ...]) -> Iterator[bytes]:
        """Completions by the grammar, the completion of the known fill, and guesses, which are valid least often."""
        if self._gap.ends_inside:
            yield b""
        if self._gap.reads(prefix) is False:
            return
        repairs, guesses = islice(self._gap.repairs(prefix), MOST_REPAIRS), self._gap.completions(prefix)
        yield from islice(repairs, 1)
        yield from self._gap.tails(self._fill, prefix)
        yield from islice(repairs, 1)
        yield from islice(guesses, 1)
        yield from repairs
        yield from guesses

    def _plausible_ends(self, draft: Draft) -> list[int]:
        """Positions after the fixed part where the draft ends a line or end-of-gap is among the model's candidates."""
        done = len(self._view.done)
        offered = [done + slot for slot in self._offered_ends if draft.kept <= done + slot < len(draft.tokens)]
        after = range(draft.kept + 1, len(draft.tokens))
        lines = [place for place in after if b"\n" in self._gap.vocabulary.piece(draft.tokens[place - 1])]
        return sorted({*offered, *lines})[:3]

    @cached_property
    def _offered_ends(self) -> list[int]:
        """The slots where end-of-gap is among the model's candidates."""
        found: list[int] = (self._view.ids == self._gap.vocabulary.eog_id).any(axis=1).nonzero()[0].tolist()
        return found

    def _push(self, cost: float, prefix: tuple[int, ...], closing: bytes) -> None:
        if self._is_cheapest(cost, prefix, closing):
            heapq.heappush(self._heap, _Entry(cost, next(self._serial), prefix, closing))

    def pop(self, late: Callable[[], bool] = lambda: False) -> Fill | None:
        """Return the cheapest fill that fits and keeps the region's rules; None when none is in reach, or in time.

        A fill whose text was tried before is skipped, and its neighbours with it: after the last line that a region
        takes, other tokens do not change the text.
        """
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
            self._current = entry
            if self._gap.begins(fill.tokens) and self._gap.accepts(fill.text):
                return fill
            self._repair(entry, self._spoilt(entry))
        return None

    def _spoilt(self, entry: _Entry) -> int:
        """The token to change in a refused fill: the first that breaks its UTF-8, or the end."""
        try:
            self._gap.vocabulary.text(entry.prefix).decode()
        except UnicodeDecodeError as error:
            return self._slot_at(entry, error.start)
        return len(entry.prefix)

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

    def blame(self, offset: int) -> None:
        """Report a fault ``offset`` bytes into the last fill: queue its neighbours with another token there."""
        entry = self._current
        if entry is None or self._fill is not None:
            return
        self._repair(entry, self._slot_at(entry, len(self._gap.prefix) + offset))

    def _slot_at(self, entry: _Entry, offset: int) -> int:
        ends = accumulate(len(self._gap.vocabulary.piece(token)) for token in entry.prefix)
        return next((slot for slot, end in enumerate(ends) if end > offset), len(entry.prefix))

    def _ranked(self, slot: int) -> list[tuple[int, float]]:
        """The model's best tokens for a slot, turned into a list once."""
        if slot not in self._known:
            self._known[slot] = ranked_tokens(self._view, slot)[:ALTERNATIVES]
        return self._known[slot]

    def _repair(self, entry: _Entry, position: int) -> None:
        for spot in range(position + REACH_RIGHT, position - REACH_LEFT - 1, -1):
            if spot in self._free and spot < len(entry.prefix):
                self._wait_for_swap(entry, spot, 0)

    def _wait_for_swap(self, entry: _Entry, spot: int, rank: int) -> None:
        """Queue a fill with the token of this rank at a spot, and after it those of the next ranks."""
        ranked = self._ranked(spot - len(self._view.done))
        kept = (entry.prefix[spot], self._gap.vocabulary.eog_id)
        rank = next((place for place in range(rank, len(ranked)) if ranked[place][0] not in kept), len(ranked))
        if rank < len(ranked):
            cost = entry.cost + COST_SWAP + COST_PER_NAT * (ranked[0][1] - ranked[rank][1])
            self.add_later(partial(self._swap, entry, spot, rank, cost), base=cost)

    def _swap(self, entry: _Entry, spot: int, rank: int, cost: float) -> None:
        token, _ = self._ranked(spot - len(self._view.done))[rank]
        self._push(cost, (*entry.prefix[:spot], token, *entry.prefix[spot + 1 :]), entry.closing)
        self._wait_for_swap(entry, spot, rank + 1)
