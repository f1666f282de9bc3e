"""The gate: what its trees say of the beginnings of a fill."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.core.params import Region
from lacuna_model.decode.evidence import Surroundings, Token, Written
from lacuna_model.decode.gate import Gate, Tree, Weights, shipped

AROUND = Surroundings.of(b"x = \n", Region(4, 4, max_lines=1))
# sum <= -2: -1; else least <= -1: 0.5, else 2
DEEP = Tree((0, 1), (-2.0, -1.0), (-1, -2), (1, -3), (-1.0, 0.5, 2.0))
FLAT = Tree((1,), (0.0,), (-1,), (-1,), (0.25,))


def sigmoid(odds: float) -> float:
    """The probability of these log-odds."""
    return 1 / (1 + math.exp(-odds))


@pytest.mark.parametrize(("total", "least", "odds"), [(-2.0, 0.0, -0.75), (-1.9, -1.0, 0.75), (0.0, 0.0, 2.25)])
def test_the_leaves_that_a_row_comes_to_are_added(total: float, least: float, odds: float) -> None:
    gate = Gate(Weights(("sum", "least"), (DEEP, FLAT)))
    other = {"sum": -9.0, "least": 0.0}
    found = gate.probabilities([{"sum": total, "least": least, "tokens": 3.0}, other])
    assert found == pytest.approx([sigmoid(odds), sigmoid(-0.75)])


@given(st.lists(st.tuples(st.text("ab (.\n", min_size=1, max_size=4), st.floats(-9, 0)), max_size=8), st.floats(-9, 0))
def test_no_beginning_is_likelier_than_a_shorter_one(pieces: list[tuple[str, float]], end: float) -> None:
    fill = "".join(text for text, _ in pieces)
    written = Written([Token(text.encode(), sure, 1.0) for text, sure in pieces], Token(b"", end, 1.0))
    found = shipped().judged(fill, written, AROUND)
    assert len(found.lines) == max(len(fill.removesuffix("\n").split("\n")), 1)
    assert all(0 < later <= earlier < 1 for earlier, later in pairwise(found.lines))
    assert all(before[1] >= after[1] for before, after in pairwise(found.words))
    assert all(sure >= found.lines[0] for _, sure in found.words)
    assert all(0 < end <= len(fill.split("\n")[0]) for end, _ in found.words)


def test_the_shipped_gate_prefers_what_the_model_is_sure_of() -> None:
    sure, unsure = (
        shipped().judged("width", Written([Token(b"width", log_prob, margin)], Token(b"", log_prob, margin)), AROUND)
        for log_prob, margin in ((-0.01, 8.0), (-4.0, 0.1))
    )
    assert sure.lines[0] > 2 * unsure.lines[0]
