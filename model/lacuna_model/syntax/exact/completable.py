"""Completions of a prefix to a suffix: whether there are any, and which are the cheapest."""

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from lacuna_model.syntax.exact.saturation import Saturation, Text
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.lr.insertions import Pieces
from lacuna_model.syntax.lr.parse_table import ParseTable, Stack

MOST_ENDED = 1000  # stacks that a prefix may become by ending open constructs


class Start(NamedTuple):
    """A stack, the text that was written to reach it from the prefix, and the cost of that text."""

    cost: float
    stack: Stack
    text: Text = ()


class _Choice(NamedTuple):
    """A stack, and the number of the next pair of its last state to ask."""

    cost: float
    serial: int
    start: Start
    number: int


def ended(table: ParseTable, pieces: Pieces, starts: Iterable[Start]) -> Iterator[Start]:
    """Yield the stacks that some stacks may become by ending open constructs, themselves included, cheapest first."""
    serial = count()
    waiting = [(start.cost, next(serial), start) for start in starts]
    heapq.heapify(waiting)
    seen: set[Stack] = set()
    while waiting and len(seen) < MOST_ENDED:
        _, _, start = heapq.heappop(waiting)
        if start.stack in seen:
            continue
        seen.add(start.stack)
        yield start
        for ending in pieces.all_endings(start.stack[-1]):
            after = table.reduce(start.stack, ending.reduction)
            if after and after not in seen:
                one = Start(start.cost + ending.cost, after, start.text + ending.text)
                heapq.heappush(waiting, (one.cost, next(serial), one))


class Completions:
    """The terminals to write between some stacks and the suffix, cheapest first.

    Of those that differ only after the prefix's open constructs are ended, the cheapest is found. What was found is
    kept; a search that the clock ended goes on when more is asked for.
    """

    def __init__(
        self,
        table: ParseTable,
        pieces: Pieces,
        saturation: Saturation,
        starts: Sequence[Start],
        clock: Clock,
    ) -> None:
        self._saturation, self._clock = saturation, clock
        self._serial = count()
        self._waiting: list[_Choice] = []  # stacks that have a pair to ask
        self._idle: dict[int, list[_Choice]] = {}  # by last state: stacks whose pairs are all asked
        self._coming = ended(table, pieces, starts)
        self._upcoming = next(self._coming, None)
        self._cheapest = self._upcoming.cost if self._upcoming is not None else math.inf
        self._known: list[Text] = []

    def __iter__(self) -> Iterator[Text]:
        number = 0
        while number < len(self._known) or self._find():
            yield self._known[number]
            number += 1

    def _find(self) -> bool:
        """Find one more; False if there is none, or none before the clock is over."""
        while not self._clock.over:
            # the least cost of an answer that is not waiting yet
            ended_later = self._upcoming.cost if self._upcoming is not None else math.inf
            bound = min(ended_later, self._cheapest + self._saturation.least)
            if self._waiting and self._waiting[0].cost <= bound:
                if self._ask(heapq.heappop(self._waiting)):
                    return True
            elif self._upcoming is not None and ended_later <= bound:
                self._wait(_Choice(0.0, 0, self._upcoming, 0))
                self._upcoming = next(self._coming, None)
            elif (state := self._saturation.grow()) is not None:
                self._wake(state)
            else:
                return False
        return False

    def _ask(self, choice: _Choice) -> bool:
        """Whether a stack meets its next pair's demand; then the text is kept."""
        start = choice.start
        state = start.stack[-1]
        _, demand = self._saturation.at[state][choice.number]
        self._wait(choice._replace(number=choice.number + 1))
        if demand is not None and not self._saturation.reader.meets(start.stack, demand):
            return False
        self._known.append(start.text + self._saturation.text(state, demand))
        return True

    def _wake(self, state: int) -> None:
        for choice in self._idle.pop(state, ()):
            self._wait(choice)

    def _wait(self, choice: _Choice) -> None:
        """Queue a stack by the cost of its next pair; it is idle where no further pair is found yet."""
        state = choice.start.stack[-1]
        known = self._saturation.at.get(state, ())
        if choice.number < len(known):
            cost = choice.start.cost + known[choice.number][0]
            heapq.heappush(self._waiting, choice._replace(cost=cost, serial=next(self._serial)))
        else:
            self._idle.setdefault(state, []).append(choice)
