"""Endings: the text to write after a text that stops midway so that it is whole, by the grammar alone."""

import heapq
from collections.abc import Iterable, Iterator
from itertools import count

from lacuna_model.syntax.completion.between import Start
from lacuna_model.syntax.lr.insertions import MOST_INSERTED, Insertions, Pieces
from lacuna_model.syntax.lr.parse_table import END, ParseTable, Stack

MOST_VISITED = 400
COST_PER_STATE = 1.0  # per state on the stack: open constructs must be ended


def ends(
    table: ParseTable, pieces: Pieces, insertions: Insertions, starts: Iterable[Start]
) -> Iterator[tuple[bytes, ...]]:
    """Yield the terminals to write after some stacks so that the text may end there, roughly cheapest first.

    Each step ends the construct of a state in one of the shortest known ways, or writes one terminal.
    """
    serial = count()
    waiting: list[tuple[float, int, Start]] = []
    seen: set[Stack] = set()

    def wait(start: Start) -> None:
        if start.stack not in seen:
            heapq.heappush(waiting, (start.cost + COST_PER_STATE * len(start.stack), next(serial), start))

    for start in starts:
        wait(start)
    while waiting and len(seen) < MOST_VISITED:
        stack, text, cost = heapq.heappop(waiting)[-1]
        if stack in seen:
            continue
        seen.add(stack)
        if table.read([stack], END, on_new_line=True):
            yield text
        for ending in pieces.endings(stack[-1]):
            if after := table.reduce(stack, ending.reduction):
                wait(Start(after, text + ending.text, cost + ending.cost))
        for one in insertions.at(stack[-1]) if len(text) <= MOST_INSERTED else ():
            for state in table.shifted(stack[-1], one.terminal):
                wait(Start((*stack, state), (*text, one.text), cost + one.cost))
