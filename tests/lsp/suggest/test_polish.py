import pytest

from lacuna_lsp.suggest.polish import Habits, adapt, clean, distinct

UNIX = Habits("\n", "    ")


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
    ("fill", "expected"),
    [
        ("x = 1   ", "x = 1"),
        ("\n    x = 1\n\n  \n", "\n    x = 1"),
        ("a\nb\nc", "a\nb\nc"),
        ("  \n\t\n", ""),
        ("x\nx\nx\nx", ""),
        ("", ""),
    ],
)
def test_a_cleaned_fill_has_no_trailing_blanks_and_says_nothing_three_times(fill: str, expected: str) -> None:
    assert clean(fill, UNIX) == expected


@pytest.mark.parametrize(
    ("fill", "before", "expected"),
    [
        ("a)", "f(", ["a)"]),
        ("a = 1", "a = 1\n", []),
        ("a = 1\nb = 2", "a = 1\n", []),
        ("a = 1\r\nb = 2", "a = 1\r\n", []),
        ("= 1", "a = 1\na ", []),
        ("}", "  }\n", ["}"]),
        ("if err != nil {", "func f() {\n\terr := f()\n\t", ["if err != nil {"]),
        ("   ", "x =", []),
    ],
)
def test_a_text_whose_first_line_repeats_the_line_above_says_nothing(
    fill: str, before: str, expected: list[str]
) -> None:
    assert [text for _, text in distinct([(0, fill)], before)] == expected
