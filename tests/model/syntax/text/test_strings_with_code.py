import pytest
from tests.model.syntax.drive import first_fill, require

from lacuna_model.core.constraint import TokenText


@pytest.mark.parametrize(
    ("name", "line", "ends"),
    [
        ("bash", 'x="$(date ', [b'"', b")"]),
        ("bash", 'x="${a} $((1 + ', [b'"', b"))"]),
        ("bash", "x='$(a' \"\\\"`b ", [b'"', b"`"]),
        ("bash", 'a "$(b "$(c ")" ', [b'"', b")", b'"', b")"]),
        ("javascript", "a(`b ${c({", [b")", b"`", b"}", b")", b"}"]),
        ("javascript", "a('${b' + \"`\"", [b")"]),
        ("python", "f'{{a} {b", [b"'", b"}"]),
        ("python", "'{a' + f\"\"\"{b['c", [b'"""', b"}", b"]", b"'"]),
        ("ruby", '"#{a} #{b["c', [b'"', b"}", b"]", b'"']),
        ("csharp", '$"{a} "; b($"{', [b")", b'"', b"}"]),
        ("php", '"{$a', [b'"', b"}"]),
    ],
)
def test_the_ends_of_the_open_strings_and_code_of_a_line_are_found(name: str, line: str, ends: list[bytes]) -> None:
    strings = require(name).strings
    assert strings is not None
    assert strings.open_ends(line.encode()) == ends


@pytest.mark.parametrize(
    ("name", "before", "after", "end"),
    [
        ("bash", 'x="$(date ', "\n", ')"'),
        ("bash", 'x="$(date ', "\necho b\n", ')"'),
        ("bash", 'x="${a', "\n", '}"'),
        ("bash", 'if [ "$(cat ', "\nthen\n  a\nfi\n", ')"]'),
        ("javascript", "x = `a ${b", "\n", "}`"),
        ("tsx", "x = <b c={`d ${e", "\n", "}`}/>"),
        ("python", "x = f'a {b", "\n", "}'"),
        ("ruby", 'x = "a #{b', "\n", '}"'),
        ("csharp", 'class A { void f() { var x = $"a {b', "\n} }\n", '}";'),
        ("php", '<?php $x = "a {$b', "\n", '}";'),
        ("javascript", "x = `a ${", "} b`;\n", "x"),
        ("javascript", "x = `a ${b", "} c`;\n", ""),
        ("typescript", "f(`\n  <p>${a.", "}</p>\n`);\n", "x"),
        ("kotlin", 'val x = "a ${', '} b"\n', "x"),
    ],
)
def test_a_search_ends_an_open_string_with_code(
    name: str, before: str, after: str, end: str, tokens: TokenText
) -> None:
    assert first_fill(before, after, require(name)) == end
