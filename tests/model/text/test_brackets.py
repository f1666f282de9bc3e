from lacuna_model.text.lines import unmatched


def test_brackets_that_stay_open_or_close_nothing_are_found() -> None:
    assert unmatched("f(a[1])") == []
    assert unmatched([")", "x", "("]) == [")", "("]
    assert unmatched("(]") == ["(", "]"]
    assert unmatched("if (x) { y[") == ["{", "["]
