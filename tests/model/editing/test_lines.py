import pytest

from lacuna_model.editing import lines

OLD = "def a():\n    return 1\n\n\ndef b():\n    x = 2\n    return x\n"


@pytest.mark.parametrize(
    "line",
    [
        "    # ... rest of the code ...",
        "// existing code unchanged",
        "    # Rest of the function remains the same",
        "# ...",
    ],
)
def test_a_comment_that_stands_for_lines_is_found(line: str) -> None:
    assert lines.hint(OLD, f"def a():\n    return 2\n{line}\n") == line.strip()


@pytest.mark.parametrize("line", ["# Returns the same value.", "# The rest of the budget is kept.", "x = [...]"])
def test_other_lines_are_no_hints(line: str) -> None:
    assert lines.hint(OLD, f"{line}\n{OLD}") == ""


def test_a_hint_that_the_old_text_has_is_a_comment_like_any_other() -> None:
    assert lines.hint("# ... rest of the code\na\nb\n", "# ... rest of the code\na\n") == ""


def test_where_lines_would_be_lost_the_old_ones_stay_and_replaced_ones_do_not() -> None:
    assert lines.without_losses("a\nb\nc\nd\n", "a\nd\n") == "a\nb\nc\nd\n"
    assert lines.without_losses("a\nb\nc\n", "a\nx\nc\ny\n") == "a\nx\nc\ny\n"
    assert lines.without_losses("a\nb\n", "x\n") == "a\nb\n"
    assert lines.without_losses("", "a\n") == "a\n"


def test_lines_that_were_put_back_do_not_move_the_probabilities_of_others() -> None:
    assert lines.carried((-1.0, -2.0), "a\nd\n", "a\nb\nc\nd\n") == (-1.0, 0.0, 0.0, -2.0)
    assert lines.carried((), "a\n", "a\n") == (0.0,)
