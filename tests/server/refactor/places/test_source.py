import pytest

from lacuna_model.syntax import LANGUAGES
from lacuna_server.refactor.places.source import Source

PYTHON = next(language for language in LANGUAGES if language.name == "python")


def source(text: str) -> Source:
    return Source("code.py", text, PYTHON)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("if a:\n    b\n", "    "),
        ("if a:\n  b\n  if c:\n    d\n", "  "),
        ("if a:\n\tb\n", "\t"),
        ("a = 1\n", "    "),
        ("def f():\r\n\tif a:\r\n\t\tb\r\n", "\t"),
    ],
)
def test_the_unit_of_indentation_is_taken_from_the_file(text: str, unit: str) -> None:
    assert source(text).indent_unit == unit
