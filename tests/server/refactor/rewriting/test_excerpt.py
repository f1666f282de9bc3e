"""A place is judged in a part of its file, as it would be in the whole file; its cost does not grow with the file."""

import pytest
from tests.server.refactor.bench import Bench

from lacuna_model.languages.parsing import Parser
from lacuna_server.refactor.rewriting.refactoring import by_structure

FILES = {
    "statements": ("a.py", "double($X)", "$X * 2", "", "x = double(a + b)\n", ""),
    "functions": ("a.py", "double($X)", "$X * 2", "", "def f(a):\n    if a:\n        return double(a)\n\n", ""),
    "elements": ("a.js", "old($X)", "fresh($X)", "const x = [\n", "  old(1),\n", "];\n"),
    "methods": ("a.js", "old($X)", "fresh($X, 1)", "class A {\n", "  m(a) {\n    return old(a);\n  }\n", "}\n"),
    "one line": ("a.js", "old($X);", "fresh($X);", "", "old(1);", ""),
    "two statements": ("a.js", "a($X);\nb($Y);", "c($X, $Y);", "", "a(1);\nb(2);\n", ""),
    "a span": ("a.js", "start();\n$$$B\nend();", "run(() => {\n  $$$B\n});", "", "start();\nb(1);\nend();\n", ""),
    "members": ("a.go", "old($A)", "fresh($A)", "package a\n\nfunc f() {\n", "\told(2)\n", "}\n"),
    "markup": ("a.html", "<b>$$$A</b>", "<i>$$$A</i>", "<body>\n", "<p><b>x</b></p>\n", "</body>\n"),
    "left out": ("a.js", "old($A)", "[$A].map(f)", "", "a()\nold(b)\n", ""),
    "not sound": ("a.py", "old($A)", "fresh($A", "", "old(1)\n", ""),
}


@pytest.mark.parametrize("kind", ["statements", "elements", "a span", "left out"])
def test_what_is_parsed_grows_with_the_places_and_not_with_their_square(
    bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, pattern, template, head, line, tail = FILES[kind]
    parsed: list[int] = []
    parse = Parser.parse

    def counted(self: Parser, text: bytes, *rest: object) -> object:
        parsed.append(len(text))
        return parse(self, text, *rest)  # type: ignore[arg-type]  # as the parser is called

    monkeypatch.setattr(Parser, "parse", counted)
    sums = []
    for count in (200, 800):
        source = bench.source(head + line * count + tail, name)
        parsed.clear()
        files, left_out = bench.edits(by_structure(pattern, template), [source])
        assert sum(len(file.edits) for file in files) + len(left_out) == count
        sums.append(sum(parsed))
    assert sums[1] < 7 * sums[0]  # four times the places; sixteen times as much if each costs the whole file


@pytest.mark.parametrize("kind", FILES)
def test_a_place_is_rewritten_in_a_long_file_as_in_a_short_one(bench: Bench, kind: str) -> None:
    name, pattern, template, head, line, tail = FILES[kind]

    def made(count: int) -> tuple[str, int]:
        source = bench.source(head + line * count + tail, name)
        files, left_out = bench.edits(by_structure(pattern, template), [source])
        text = files[0].rewritten(source.data).decode() if files else source.text
        return text.removeprefix(head).removesuffix(tail), len(left_out)

    short, long = made(3), made(120)
    assert long == (short[0][: len(short[0]) // 3] * 120, short[1] * 40)


def test_where_a_cut_would_be_read_otherwise_the_file_is_its_own_excerpt(bench: Bench) -> None:
    text = "".join(f"x{i} = <<A\n  #{{f({i})}}\nA\n" for i in range(60))
    source = bench.source(text, "a.rb")
    made = bench.apply(by_structure("f($A)", "g($A)"), text, "a.rb")
    assert made == text.replace("f(", "g(")
    assert not source.tree.root_node.has_error
