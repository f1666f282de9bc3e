"""Best-first search: the only one over the states of a grammar. It finds the cheapest text that leads to a state.

A caller defines what a state is, which moves lead on from it, which states are goals, and how much is still to be paid
at least (A*: Hart, Nilsson and Raphael, 1968).
"""

import heapq
import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from lacuna_model.core import work

MOVE_NS = 3_200  # of work

State = TypeVar("State", bound=Hashable)


class Way(NamedTuple, Generic[State]):
    """A state, the terminals to write to reach it, and the cost of these."""

    state: State
    text: tuple[bytes, ...] = ()
    cost: float = 0.0


def best_first(
    starts: Iterable[Way[State]],
    moves: Callable[[Way[State]], Iterable[Way[State]]],
    estimate: Callable[[State], float] = lambda _: 0.0,
    *,
    most: int,
) -> Iterator[Way[State]]:
    """Yield a way to each state, the cheapest first, up to ``most`` states.

    ``estimate`` is what has to be paid from a state on; a state where it is infinite is left out. A state's moves are
    asked for after it was yielded, so a caller that has found enough, or has no time left, does not pay for them.
    """
    serial = count()
    waiting: list[tuple[float, int, Way[State]]] = []
    seen: set[State] = set()

    def wait(ways: Iterable[Way[State]]) -> None:
        for way in ways:
            work.spend(MOVE_NS)
            if way.state not in seen and (rank := way.cost + estimate(way.state)) < math.inf:
                heapq.heappush(waiting, (rank, next(serial), way))

    wait(starts)
    while waiting and len(seen) < most:
        way = heapq.heappop(waiting)[-1]
        if way.state in seen:
            continue
        seen.add(way.state)
        yield way
        wait(moves(way))
