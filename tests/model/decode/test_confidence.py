"""How likely each line of a fill is right, from the log-probabilities of its tokens."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.core.constraint import UNKNOWN_LOG_PROB
from lacuna_model.decode.confidence import of_lines, probability


class ByteTokens:
    """A tokenizer in which every byte is a token. The end token has no bytes."""

    eog_id = 256

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token: int) -> bytes:
        return bytes([token]) if token < self.eog_id else b""

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        return b"".join(map(self.token_bytes, tokens))


def confidences(fill: str, written: str, said: list[float], prefix: str = "") -> tuple[float, ...]:
    """The confidence of each line of ``fill``. The model wrote ``written``, a token per letter, and the end."""
    tokens = ByteTokens()
    return of_lines(fill, tokens.encode(prefix + written), dict(enumerate(said)), prefix.encode(), tokens)


def test_the_confidence_of_a_line_counts_its_tokens_and_its_end() -> None:
    assert confidences("ab", "ab", [-1.0, -2.0, -0.5]) == pytest.approx((probability(-3.5),))


def test_the_confidence_of_a_line_counts_the_lines_before_it() -> None:
    said = [-1.0, -0.25, -2.0, -0.5, -4.0]  # a, newline, b, newline, the end
    expected = probability(-1.25), probability(-3.75)
    assert confidences("a\nb\n", "a\nb\n", said) == pytest.approx(expected)


def test_a_line_that_the_constraint_wrote_has_a_low_confidence() -> None:
    """The model writes two lines; the second line that is delivered is another one."""
    said = [-0.1, -0.1, -0.1, -0.1]
    first, second = confidences("a\nc", "a\nb", said)
    assert first == pytest.approx(probability(-0.2))
    assert second == pytest.approx(probability(-0.4 + UNKNOWN_LOG_PROB))


@given(st.text("ab\n", max_size=12), st.text("ab\n", max_size=12), st.lists(st.floats(-12, 0), max_size=16))
def test_every_line_has_a_confidence_no_higher_than_the_line_before(fill: str, written: str, said: list[float]) -> None:
    found = confidences(fill, written, said)
    assert len(found) == max(len(fill.splitlines()), 1)
    assert all(0 < later <= earlier < 1 for earlier, later in pairwise(found))
