from lacuna_model.next_edit.changes import RecentChange, TokenizedText, hunks
from lacuna_model.text.diff import Hunk


def test_many_lines_alike_are_compared_in_bounded_time() -> None:
    """One line after another without a bound, this takes hours."""
    old, new = "a\nb\n" * 10_000, "b\nc\na\n" * 10_000
    assert hunks(old, new) == [Hunk(0, 20_000, 0, 30_000)]
    unique = [f"line {number}\n\n" for number in range(5_000)]
    changed = [*unique]
    changed[10], changed[4_000] = "other\n\n", "another\n\n"
    assert hunks("".join(unique), "".join(changed)) == [Hunk(20, 21, 20, 21), Hunk(8_000, 8_001, 8_000, 8_001)]


def test_the_nearest_change_is_that_of_the_line_or_beside_it() -> None:
    old, new = "a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n"
    for row, hunk in ((1, Hunk(0, 1, 0, 1)), (4, Hunk(4, 5, 4, 5))):
        assert RecentChange.at(old, new, row) == RecentChange(TokenizedText(old), TokenizedText(new), hunk)
    assert RecentChange.at(old, old, 4) is None


def test_very_long_lines_are_no_exchange() -> None:
    old, new = "x" * 3 + " y" * 500 + "\n", "z" * 3 + " y" * 500 + "\n"
    assert RecentChange(TokenizedText(old), TokenizedText(new), Hunk(0, 1, 0, 1)).exchanges == []
