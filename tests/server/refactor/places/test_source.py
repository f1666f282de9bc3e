import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.core.errors import RequestError
from lacuna_model.syntax import LANGUAGES
from lacuna_server.refactor.places.source import Source

PYTHON = next(language for language in LANGUAGES if language.name == "python")


def source(text: str) -> Source:
    return Source("code.py", text, PYTHON)


@given(st.text(alphabet="aé👍\ufeff\n\r\t ", max_size=40))
def test_offsets_are_byte_offsets_of_the_encoded_text(text: str) -> None:
    made = source(text)
    for index in range(len(text) + 1):
        offset = made.offset(index)
        assert made.data[:offset].decode() == text[:index]
        line, column = made.position(offset)
        lines = re.split(r"\r\n|\r|\n", text[:index])
        assert (line, column) == (len(lines), len(lines[-1]))


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


def test_the_indentation_and_the_text_before_an_offset() -> None:
    made = source("é = 1\r\n\tx = y\r\n")
    at = made.data.index(b"y")
    assert made.indent_at(at) == "\t"
    assert made.lead(at) == "\tx = "
    assert made.newline == "\r\n"


def test_a_line_inside_a_string_is_distinguished_from_code() -> None:
    made = source('x = """\n  text {y}\n"""\nz = f(\n  1)\n')
    assert made.data.index(b"  text") in made.kept_lines
    assert made.data.index(b"  1") not in made.kept_lines


def test_a_query_of_another_grammar_is_refused() -> None:
    with pytest.raises(RequestError, match="the query is not one for python"):
        list(source("x\n").query("(struct_item) @place"))
