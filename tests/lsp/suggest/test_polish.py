import pytest

from lacuna_lsp.suggest.polish import Habits, adapt, clean, is_worth_showing

UNIX = Habits("\n", "    ")


@pytest.mark.parametrize(
    ("text", "newline", "indent"),
    [
        ("a:\n\tb\n\tc\n    d\n", "\n", "\t"),
        ("a:\n    b\n        c\n", "\n", "    "),
        ("a:\n  b\n    c\n", "\n", "  "),
        ("a\nb\n", "\r\n", ""),
    ],
)
def test_habits_are_the_newline_and_the_indentation_of_the_file(text: str, newline: str, indent: str) -> None:
    assert Habits.of(text, newline) == Habits(newline, indent)


@pytest.mark.parametrize(
    ("fill", "habits", "expected"),
    [
        ("a\n    b\n        c", Habits("\n", "\t"), "a\n\tb\n\t\tc"),
        ("a\n\tb\n\t\tc", Habits("\n", "  "), "a\n  b\n    c"),
        ("a\nb\r\nc\rd", Habits("\r\n", ""), "a\r\nb\r\nc\r\nd"),
        ("    a\n\tb", Habits("\n", ""), "    a\n\tb"),
        ("    first", Habits("\n", "\t"), "    first"),
    ],
)
def test_a_fill_gets_the_newlines_and_the_indentation_of_the_file(fill: str, habits: Habits, expected: str) -> None:
    assert adapt(fill, habits) == expected


@pytest.mark.parametrize(
    ("fill", "max_lines", "expected"),
    [
        ("x = 1   ", 1, "x = 1"),
        ("\n    x = 1\n\n  \n", 5, "\n    x = 1"),
        ("a\nb\nc", 2, "a\nb"),
        ("f(\n    a,\n)", 1, "f("),
        ("  \n\t\n", 9, ""),
        ("x\nx\nx\nx", 9, ""),
        ("", 1, ""),
    ],
)
def test_a_cleaned_fill_has_at_most_so_many_lines_and_no_trailing_blanks(
    fill: str, max_lines: int, expected: str
) -> None:
    assert clean(fill, UNIX, max_lines=max_lines) == expected


@pytest.mark.parametrize(
    ("text", "before", "worth"),
    [
        ("a = 1", "a = 1\n", False),
        ("a = 1\nb = 2", "a = 1\n", False),
        ("= 1", "a = 1\na ", False),
        ("}", "  }\n", True),
        ("a = 2", "a = 1\n", True),
        ("if err != nil {", "err := f()\n", True),
        ("   ", "x =", False),
        ("", "", False),
        ("x", "", True),
    ],
)
def test_a_text_is_worth_showing_unless_it_is_blank_or_the_code_of_the_line_above(
    text: str, before: str, worth: bool
) -> None:
    assert is_worth_showing(text, before) == worth
