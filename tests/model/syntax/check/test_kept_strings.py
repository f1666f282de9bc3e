"""A gap in a string: a fill of one line stays in the string, even if a quote would lead to valid code."""

import pytest
from tests.model.syntax.drive import certain, fill, require

from lacuna_model.core.constraint import TokenText
from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint
from lacuna_model.syntax.check.document import Document

STRINGS = {
    "python": ('print("a ', '", name)\n'),
    "javascript": ('f("a ', '", name);\n'),
    "typescript": ("f('a ", "', name);\n"),
    "tsx": ('a = <b c="', '"/>;\n'),
    "c": ('char *x = "a', '";\n'),
    "cpp": ('auto x = "a', '";\n'),
    "java": ('class A { String x = "a', '"; }\n'),
    "csharp": ('class A { string x = "a', '"; }\n'),
    "go": ('package a\nvar x = "a', '"\n'),
    "rust": ('const X: &str = "a', '";\n'),
    "ruby": ('f("a', '", name)\n'),
    "php": ('<?php f("a', '", $name);\n'),
    "lua": ('f("a', '", name)\n'),
    "bash": ('f "a', '" name\n'),
    "json": ('["a', '"]\n'),
    "yaml": ('x: ["a', '"]\n'),
    "toml": ('x = ["a', '"]\n'),
    "css": ('a { b: "a', '" }\n'),
    "html": ('<a b="', '">x</a>\n'),
}


def document(name: str, before: str, after: str, *, in_line: bool = True) -> Document:
    place = len(before)
    return Document((before + after).encode(), [(place, place)], require(name), in_line=in_line)


@pytest.mark.parametrize("name", STRINGS)
def test_a_fill_stays_in_the_string(name: str) -> None:
    before, after = STRINGS[name]
    quote = after[0]
    for between in (" + ", ", ", " ", " c=", " .. ", " . "):
        text = f"b{quote}{between}{quote}c".encode()
        assert not document(name, before, after).check([text]).valid
        assert not document(name, before, after).check_fresh([text]).valid
    assert document(name, before, after).check([b"b c"]).valid
    assert document(name, before, after).check_fresh([b"b c"]).valid


def test_code_in_a_string_is_checked_as_code() -> None:
    own = document("javascript", "x = `a ${f(", ")}`;\n")
    assert own.check([b"`b`, 'c'"]).valid
    own = document("javascript", "x = `a ", "`;\n")
    assert own.check([b"${`b`}"]).valid
    assert not own.check([b"` + `"]).valid


def test_a_fill_may_close_a_string_that_is_not_closed() -> None:
    own = document("python", 'print("a ', ", name)\n")
    assert own.check([b'b"']).valid


def test_a_model_that_proposes_to_leave_the_string_does_not_leave_it(tokens: TokenText) -> None:
    before, after = 'name = input()\nprint("Hello ', '", name)\n'
    place = len(before)
    region = Region(place, place, max_tokens=24, single_line=True)
    constraint = SyntaxConstraint((before + after).encode(), [region], require("python"), tokens)
    verdict = fill(constraint, certain([list(tokens.encode('" + name + "'))], tokens.eog_id), [24], tokens.eog_id)
    assert verdict.fills is not None
    assert '"' not in verdict.fills[0].replace('\\"', "")
