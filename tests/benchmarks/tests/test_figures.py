import pytest
from tests.benchmarks.figures import grouped, percentile, table, wilson


def test_wilson_agrees_with_the_published_example() -> None:
    # Newcombe 1998, Statistics in Medicine 17, table I, method 3: 81 of 263 and 15 of 148.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)


def test_percentiles_are_values_and_groups_add_up() -> None:
    assert [percentile([3, 1, 2, 4], share) for share in (0, 50, 75, 95)] == [1, 2, 3, 4]
    assert percentile([], 50) == 0
    assert grouped([1, 2, 3], lambda one: "odd" if one % 2 else "even") == {
        "odd": [1, 3],
        "even": [2],
        "all": [1, 2, 3],
    }
    assert list(grouped([1], str)) == ["1"]
    shown = table([{"what": "a", "n": 1234, "share": 0.5}, {"what": "b", "n": 1, "share": 123.4}])
    assert [list(column.cells) for column in shown.columns] == [["a", "b"], ["1,234", "1"], ["0.50", "123"]]
