from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.text.brackets import depth, step, unmatched


def test_brackets_that_stay_open_or_close_nothing_are_found() -> None:
    assert unmatched("f(a[1])") == []
    assert unmatched([")", "x", "("]) == [")", "("]
    assert unmatched("(]") == ["(", "]"]
    assert unmatched("if (x) { y[") == ["{", "["]


@given(st.text(alphabet="()[]{}x ", max_size=20))
def test_the_depth_is_that_of_the_unmatched_brackets(text: str) -> None:
    assert depth(text) == sum(map(step, unmatched(text))) == sum(map(step, text))
