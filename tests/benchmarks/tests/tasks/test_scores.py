import pytest
from tests.benchmarks.tasks.scores import wilson


def test_wilson_agrees_with_the_published_example() -> None:
    # Newcombe 1998, Statistics in Medicine 17, table I, method 3: 81 of 263 and 15 of 148.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
