import pytest
from tests.server.refactor.bench import Bench

from lacuna_server.refactor.places.select import (
    WHOLE,
    PatternMatch,
    by_query,
    query_names,
)
from lacuna_server.refactor.places.source import Source

CODE = """\
# é 👍
get("é", a=1)
get()
other(get(get(x), *y))
"""


def piece(source: Source, match: PatternMatch, name: str) -> str:
    return source.slice(*match.captures[name])


@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["plain", "bom"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_pattern_finds_places_and_names_their_pieces(bench: Bench, start: str, newline: str) -> None:
    source = bench.source(start + CODE.replace("\n", newline))
    matches = bench.matches(source, "get($$$ARGS)")
    assert [source.slice(match.start, match.end) for match in matches] == [
        'get("é", a=1)',
        "get()",
        "get(get(x), *y)",
        "get(x)",
    ]
    assert [piece(source, match, "ARGS") for match in matches] == ['"é", a=1', "", "get(x), *y", "x"]
    assert piece(source, matches[0], WHOLE) == 'get("é", a=1)'


@pytest.mark.parametrize(
    "name", ["a.js", "a.ts", "a.tsx", "a.go", "a.rs", "a.java", "a.c", "a.cpp", "a.rb", "a.php", "a.lua"]
)
def test_patterns_work_in_every_language(bench: Bench, name: str) -> None:
    texts = {
        "a.go": "package a\n\nfunc f() {\n\tget(1, 2)\n}\n",
        "a.rs": "fn f() {\n    get(1, 2);\n}\n",
        "a.java": "class A {\n    void f() {\n        get(1, 2);\n    }\n}\n",
        "a.c": "int f() {\n    get(1, 2);\n}\n",
        "a.cpp": "int f() {\n    get(1, 2);\n}\n",
        "a.php": "<?php\nget(1, 2);\n",
    }
    source = bench.source(texts.get(name, "get(1, 2)\n"), name)
    matches = bench.matches(source, "get($$$ARGS)")
    assert [piece(source, match, "ARGS") for match in matches] == ["1, 2"]


def test_a_query_replaces_or_inserts(bench: Bench) -> None:
    source = bench.source("def f(a, b):\n    return a\n")
    (place,) = by_query(source, "(return_statement (identifier) @value) @place")
    assert piece(source, place, "VALUE") == "a"
    assert source.slice(place.start, place.end) == "return a"
    (before,) = by_query(source, "(block (return_statement) @before)")
    assert before.start == before.end == source.data.index(b"return")
    (after,) = by_query(source, "(function_definition name: (_) @name parameters: (_) @after)")
    assert after.start == after.end == source.data.index(b":")
    assert query_names("(a) @x (b) @place") == {"X", "PLACE"}
