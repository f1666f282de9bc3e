import pytest

from lacuna_lsp.suggest.triggers import Cursor, Shape, shape


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
    cursor = Cursor(head, tail, above)
    assert shape(cursor, "auto", invoked=False) == automatic
    assert shape(cursor, "auto", invoked=True) == invoked


def test_the_multiline_setting_overrides_the_shape() -> None:
    cursor = Cursor("x = ", "", "y = 1")
    assert shape(cursor, "always", invoked=False) == "block"
    assert shape(cursor, "never", invoked=True) == "line"
    assert shape(Cursor("", "", "def f():"), "never", invoked=False) == "line"
