"""Best-first search finds the cheapest way to each state, in the order of the costs."""

import math
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.syntax.lr.best_first import Way, best_first

EDGES = st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 6)), st.integers(1, 9), max_size=20)


def moves_of(edges: dict[tuple[int, int], int]) -> "Moves":
    return Moves(edges)


class Moves:
    """The moves of a graph, and the states whose moves were asked for."""

    def __init__(self, edges: dict[tuple[int, int], int]) -> None:
        self.edges, self.asked = edges, list[int]()

    def __call__(self, way: Way[int]) -> Iterator[Way[int]]:
        self.asked.append(way.state)
        for (begin, end), cost in self.edges.items():
            if begin == way.state:
                yield Way(end, (*way.text, b"%d" % end), way.cost + cost)


def distances(edges: dict[tuple[int, int], int]) -> dict[int, float]:
    """By relaxing all edges again and again (Bellman-Ford)."""
    found: dict[int, float] = {0: 0.0}
    for _ in range(8):
        for (begin, end), cost in edges.items():
            found[end] = min(found.get(end, math.inf), found.get(begin, math.inf) + cost)
    return {state: cost for state, cost in found.items() if cost < math.inf}


@given(EDGES)
def test_every_state_is_reached_at_its_least_cost(edges: dict[tuple[int, int], int]) -> None:
    found = list(best_first([Way(0)], moves_of(edges), most=100))
    assert {way.state: way.cost for way in found} == distances(edges)
    assert [way.cost for way in found] == sorted(way.cost for way in found)
    assert len({way.state for way in found}) == len(found)


@given(EDGES)
def test_an_estimate_that_is_exact_leads_straight_to_the_goal(edges: dict[tuple[int, int], int]) -> None:
    backwards = distances({(6 - end, 6 - begin): cost for (begin, end), cost in edges.items()})
    left = {6 - state: cost for state, cost in backwards.items()}  # from each state to state 6
    found = list(best_first([Way(0)], moves_of(edges), lambda state: left.get(state, math.inf), most=100))
    costs = {way.state: way.cost for way in found}
    assert costs.get(6) == distances(edges).get(6)
    assert set(costs) <= set(left)


def test_moves_are_asked_for_only_if_a_further_way_is_taken() -> None:
    moves = moves_of({(0, 1): 1, (1, 2): 1})
    ways = best_first([Way(0)], moves, most=100)
    assert next(ways).state == 0
    assert moves.asked == []
    assert next(ways) == Way(1, (b"1",), 1)
    assert moves.asked == [0]


def test_a_search_ends_after_so_many_states() -> None:
    edges = {(state, state + 1): 1 for state in range(100)}
    assert len(list(best_first([Way(0)], moves_of(edges), most=7))) == 7
