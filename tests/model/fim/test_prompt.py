"""What stands in the prompt of a gap in place of the gaps after it."""

import pytest

from lacuna_model.fim.prompt import joined

METHOD = "\n\n    def g(self):\n        return 1\n"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("\n    y = ", "\n    return y\n", "\n    return y\n"),
        (METHOD + "\n    def h(self):\n        ", "\n\nx = 1\n", METHOD + "\n\nx = 1\n"),
        (METHOD + "\n    def h(self):\n        return ", "\n", METHOD + "\n"),
        ("\n\ndef g():\n    for a in b:\n        ", "\n\nx = 1\n", "\n\n\nx = 1\n"),
        ('\n\ndef g():\n    """Say."""\n    ', "\n", '\n\ndef g():\n    """Say."""\n'),
        ("\n    if a:\n        ", "\n        c()\n", "\n    if a:\n        c()\n"),
        (";\n  }\n\n  g() {\n    ", "\n  }\n\n  h() {}\n", ";\n  }\n\n\n  h() {}\n"),
        (";\n}\n\nfunction g(a) {\n  return ", ";\n}\n", ";\n}\n\n"),
        ("\n    f(", ", 1)\n", "\n    f(, 1)\n"),
        (", ", ")\n", ", )\n"),
        ("\n    for a in b:\n", "    return c\n", "\n    for a in b:\n    return c\n"),
        ("\n    c = 1\n", "    return c\n", "\n    c = 1\n    return c\n"),
        (":\n        ", "\n", ":\n"),
        (" = 1\r\n    y = ", "\r\n    z()\r\n", " = 1\r\n    z()\r\n"),
    ],
    ids=[
        "line", "body", "value", "nested", "docstring", "more-of-the-block", "braces", "semicolon", "within-a-line",
        "one-line", "lines-of-a-block", "lines", "own-header", "carriage-returns",
    ],
)  # fmt: skip
def test_a_line_that_ends_with_a_gap_is_left_out_with_empty_headers(before: str, after: str, expected: str) -> None:
    assert joined(before, after) == expected
