"""Layouts of languages whose blocks are columns."""

from lacuna_model.syntax.text.columns import Needs, StatementLine, lay_lines, open_lines, render


def test_a_layout_opens_the_blocks_of_the_lines_to_come() -> None:
    opened = [StatementLine(0, b"def"), StatementLine(4, b"x")]
    layout = lay_lines(opened, [StatementLine(8, b"y"), StatementLine(4, b"except")], header=False, unit=4)
    assert render(layout, b"\n", b" ") == b"\n    try:\n        "
    assert open_lines(b"class A:\n    def f():\n        x", 4) == [
        StatementLine(0, b"class"),
        StatementLine(4, b"def"),
        StatementLine(8, b"x"),
    ]


def test_a_block_that_returns_is_put_into_a_function_of_the_class() -> None:
    opened = [StatementLine(0, b"class"), StatementLine(4, b"x")]
    layout = lay_lines(opened, [StatementLine(8, b"y")], header=False, unit=4, needs=Needs(b"if x:", b"def x():"))
    assert render(layout, b"\n", b" ") == b"\n    def x():\n        "
