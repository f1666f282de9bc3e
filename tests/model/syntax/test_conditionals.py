"""Directives over several lines, begun in a gap and gone on with behind it."""

import pytest

from .drive import between, require


@pytest.mark.parametrize(
    ("fill", "after"),
    [
        ("", "(B || C) \\\n    || D"),
        ("", "&& A || \\\n    B"),
        ("int a;\n", "(B || C) \\\n    || D"),
        ("int a;", "(B || C) \\\n    || D"),
        ("#if defined(A) &&", "(B || C) \\\n    || D"),
        ("#if defined(A) && \\\n    defined(B)", "&& A || \\\n    B"),
    ],
)
def test_a_directive_is_begun_that_goes_on_behind_the_gap(fill: str, after: str) -> None:
    document, closer = between("int c;\n", f"\n    {after}\nint b;\n#endif\n", require("c"))
    text = fill.encode()
    assert document.check([text + next(closer.completions(text))]).valid


def test_lines_of_a_macro_are_begun() -> None:
    document, closer = between("int c;\n", "\n  do { f(x); \\\n  } while (0)\nint d;\n", require("cpp"))
    assert document.check([next(closer.completions(b""))]).valid


def test_a_directive_of_its_own_is_not_gone_on_with() -> None:
    _, closer = between("int c;\n", "\n#define A \\\n  1\nint d;\n", require("c"))
    assert not any(end.endswith(b"\\") for end in closer.completions(b""))
