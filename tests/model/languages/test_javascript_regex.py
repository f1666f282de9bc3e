"""Regular expressions that JavaScript's compilers accept, and others that they refuse."""

import pytest
from tests.model.syntax.drive import require
from tree_sitter import Parser, Query, QueryCursor

from lacuna_model.languages.javascript_regex import well_formed

TAKEN = [
    r"/a|b*?c+/",
    r"/(?:a)(?=b)(?<name>c)(?<!d)(?i:e)/",
    r"/[^a-z\d-x\]]+]/",
    r"/[+\-*&%]/",
    r"/a{2,3}{/",
    r"/{}a{,3}/",
    r"/[\u{10000}-\u{10FFFF}]/u",
    r"/[\x00-\x1f\cA-\cB\0-\7]/",
    r"/(?=a)*/",
    r"/[(-*]/",
    "/[\U0001f600-\U0001f602]/u",
    r"/[[a-z]--[aeiou]]/v",
    r"/a{002,2}/",
    f"/a{{1{'0' * 5_000},2{'0' * 5_000}}}/",
]
REFUSED = [
    r"/(a/",
    r"/a)/",
    r"/(?a)/",
    r"/(?<!a/",
    r"/(*a)/",
    r"/a|+/",
    r"/(?:?)/",
    r"/a**/",
    r"/^*/",
    r"/$+/",
    r"/\b+/",
    r"/a{3,2}/",
    f"/a{{2{'0' * 5_000},1{'0' * 5_000}}}/",
    r"/[z-a]/",
    r"/[a-\x10]/",
    r"/[\u{10000}-\u{10FFFF}]/",
    "/[\U0001f600-\U0001f602]/",
]


@pytest.mark.parametrize(("literal", "taken"), [*((one, True) for one in TAKEN), *((one, False) for one in REFUSED)])
def test_a_pattern_is_well_formed_if_javascript_accepts_it(literal: str, taken: bool) -> None:
    grammar = require("javascript").grammar()
    tree = Parser(grammar).parse(f"a = {literal};".encode())
    assert not tree.root_node.has_error
    (pattern,) = QueryCursor(Query(grammar, "(regex_pattern) @pattern")).captures(tree.root_node)["pattern"]
    assert well_formed(pattern) == taken
