import pytest

from lacuna_lsp.suggest.triggers import Shape, shape, sure_part

TEXT = "total(first, second)\nreturn total"
Words = tuple[tuple[int, float], ...]


@pytest.mark.parametrize(
    ("head", "tail", "above", "automatic", "invoked"),
    [
        ("x = ", "", "y = 1", "line", "block"),
        ("", "", "def f():", "block", "block"),
        ("    ", "", "if (x) {", "block", "block"),
        ("def f():", "", "", "block", "block"),
        ("xs.map(x =>", "", "", "block", "block"),
        ("    ", "", "y = 1", "line", "block"),
        ("f(", ")", "", "line", "line"),
        ("f(", '")]: ', "", "line", "line"),
        ("f(", ") + more", "", "none", "line"),
        ("wo", "rd", "", "none", "none"),
        ("x = 1;", "", "", "none", "block"),
        ("ende", "", "do", "line", "block"),
    ],
)
def test_the_text_around_the_cursor_decides_the_shape(
    head: str, tail: str, above: str, automatic: Shape, invoked: Shape
) -> None:
    before, after = f"{above}\n\n{head}", f"{tail}\nmore"
    assert shape(before, after, "auto", invoked=False) == automatic
    assert shape(before, after, "auto", invoked=True) == invoked


def test_the_multiline_setting_overrides_the_shape() -> None:
    assert shape("y = 1\nx = ", "", "always", invoked=False) == "block"
    assert shape("y = 1\nx = ", "", "never", invoked=True) == "line"
    assert shape("def f():\n", "", "never", invoked=False) == "line"


@pytest.mark.parametrize(
    ("text", "lines", "words", "at_least", "shown"),
    [
        ("first()\r\nsecond()\r\nthird()", (0.9, 0.8, 0.2), (), 0.5, "first()\r\nsecond()"),  # no half of a line end
        ("\n    a = load(path)\n", (0.1, 0.1), (), 0.4, ""),  # an end of line that nobody typed
        ("a.bcd(efgh)", (0.1,), ((1, 0.9), (2, 0.9), (5, 0.3)), 0.5, ""),  # a few characters are not worth a cut
        (TEXT, (), (), 1.0, TEXT),  # without a judgement
    ],
)
def test_what_is_cut(text: str, lines: tuple[float, ...], words: Words, at_least: float, shown: str) -> None:
    assert sure_part(text, lines, words, at_least) == shown
