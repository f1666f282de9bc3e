"""How likely a fill is right, line by line, from what was said of its tokens."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.decode.confidence import UNKNOWN_LOG_PROB, Calibration, fitted, of_lines


class ByteTokens:
    """Every byte is a token; the end has none."""

    eog_id = 256

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token: int) -> bytes:
        return bytes([token]) if token < self.eog_id else b""

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        return b"".join(map(self.token_bytes, tokens))


def sure(fill: str, written: str, said: list[float], prefix: str = "") -> tuple[float, ...]:
    """The confidence in a fill where the canvas says ``written``, a token for every letter, and then the end."""
    tokens = ByteTokens()
    return of_lines(fill, tokens.encode(prefix + written), dict(enumerate(said)), prefix.encode(), tokens)


def test_a_line_is_as_likely_as_its_tokens_and_its_end() -> None:
    assert sure("ab", "ab", [-1.0, -2.0, -0.5]) == pytest.approx((fitted().probability(-3.5),))


def test_every_line_counts_those_before() -> None:
    said = [-1.0, -0.25, -2.0, -0.5, -4.0]  # a, newline, b, newline, the end
    expected = fitted().probability(-1.25), fitted().probability(-3.75)
    assert sure("a\nb\n", "a\nb\n", said) == pytest.approx(expected)


def test_the_healed_text_in_front_is_no_line_of_the_fill() -> None:
    assert sure("a", "a", [-0.5, -1.0, -2.0], prefix="(") == pytest.approx((fitted().probability(-3.5),))


def test_an_empty_fill_is_as_likely_as_its_end() -> None:
    assert sure("", "", [-0.75]) == pytest.approx((fitted().probability(-0.75),))


def test_what_the_constraint_made_is_unlikely() -> None:
    """The model says two lines, and another second one is delivered."""
    said = [-0.1, -0.1, -0.1, -0.1]
    first, second = sure("a\nc", "a\nb", said)
    assert first == pytest.approx(fitted().probability(-0.2))
    assert second == pytest.approx(fitted().probability(-0.4 + UNKNOWN_LOG_PROB))


@given(st.text("ab\n", max_size=12), st.text("ab\n", max_size=12), st.lists(st.floats(-12, 0), max_size=16))
def test_there_is_one_for_every_line_and_none_grows(fill: str, written: str, said: list[float]) -> None:
    found = sure(fill, written, said)
    assert len(found) == max(len(fill.splitlines()), 1)
    assert all(0 < later <= earlier < 1 for earlier, later in pairwise(found))


@given(st.floats(-59, 0))
def test_a_probability_says_what_it_was_made_of(said: float) -> None:
    calibration = Calibration(0.2, 0.4)
    assert calibration.log_prob(calibration.probability(said)) == pytest.approx(said, abs=1e-4)
