"""Odds and probabilities."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.core.odds import with_odds


@given(st.floats(0.01, 0.99), st.floats(0.1, 10))
def test_odds_are_multiplied(probability: float, factor: float) -> None:
    found = with_odds(probability, factor)
    assert found / (1 - found) == pytest.approx(factor * probability / (1 - probability))
