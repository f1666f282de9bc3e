"""Which errors the languages' own compilers report."""

from lacuna_model.syntax.check.compilers import python_program, python_syntax


def test_the_compiler_is_asked_about_errors_of_the_fill_only() -> None:
    text = b"print 1\nx = (2\ny = 3\n"
    assert python_syntax(text, [(17, 18)]) is None
    assert python_syntax(b"x = 1\ny = (2]\n", [(6, 13)]) is not None
    assert python_syntax(b"def f():\n    return 1\n", [(9, 21)]) is None
    assert python_program(b"return 1\n", [(0, 8)]) is not None
    assert python_syntax(b"x = '\0'\n", [(0, 7)]) is not None


def test_a_try_without_clauses_is_an_error_of_its_own_fill() -> None:
    text = b"try:\n    try:\n        a()\n    finally:\n        b()\n    c()\nd()\n"
    assert python_syntax(text, [(0, 4)]) is not None
    assert python_syntax(text, [(9, 13)]) is not None  # a fill after it may have to write the clauses
    behind = b"try:\n    a()\nb()\nc()\n"
    assert python_syntax(behind, [(len(behind) - 4, len(behind) - 1)]) is None
