import pytest

from lacuna_lsp.suggest.polish import Habits, adapt, clean, fit

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
    ("fill", "before", "after", "expected"),
    [
        ("a)", "f(", ")\n", "a"),
        ("a", "f(", ")\n", "a"),
        ("x)", "f(g(", ")\n", "x)"),
        ("a, [b]", "f(", ")\n", "a, [b]"),
        ('name}!"', 'print(f"Hello {', '}")\n', "name"),
        ("\n    2,\n]", "x = [\n    1,", "\n]\n", "\n    2,"),
        ("\r\n    2,\r\n]", "x = [\r\n    1,", "\r\n]\r\n", "\r\n    2,"),
        ("a = 1", "a = 1\n", "\n", ""),
        ("a = 1\nb = 2", "a = 1\n", "\n", ""),
        ("= 1", "a = 1\na ", "\n", ""),
        ("}", "  }\n", "\n", "}"),
        ("if err != nil {", "func f() {\n\terr := f()\n\t", "\n\nfunc g() {\n}\n", "if err != nil {"),
        ("   ", "x =", "\n", ""),
    ],
)
def test_a_fitted_fill_repeats_no_code_and_closes_what_it_opened(
    fill: str, before: str, after: str, expected: str
) -> None:
    assert fit(fill, before, after) == expected


def test_accepting_a_part_does_not_cut_the_rest() -> None:
    typed, rest = "if a:", "\n    b()\nc()"
    assert fit(typed + rest, "x = 1\n", "\n") == typed + rest
    assert fit(rest, "x = 1\n" + typed, "\n", typed) == rest
    assert fit(rest, "x = 1\n" + typed, "\n") == "\n    b()"
