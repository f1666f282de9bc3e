"""Parses that reuse the tree of the parse before."""

import numpy as np
import pytest
from tests.model.syntax.drive import leaves, require
from tree_sitter import Parser

from lacuna_model.syntax.lr.prefix import Reparser

FRONT = {
    "python": b"class A:\n    def f(self, x):\n        if x:\n            return [1]\n",
    "javascript": b"function f(a) {\n  const b = `x${a}`;\n",
    "c": b"#define A \\\n  1\nint f(int a) {\n",
}
PARTS = (b"    ", b"\n", b"x", b"= ", b"(", b")", b"{", b"}", b";", b'"', b"/*", b"*/", b"else", b":", b"\n        y")


@pytest.mark.parametrize("name", FRONT)
def test_a_reparse_gives_the_leaves_of_a_fresh_parse(name: str) -> None:
    language, front, rng = require(name), FRONT[name], np.random.default_rng(7)
    reparser, text = Reparser(language), front
    for _ in range(200):
        text = text[: rng.integers(len(front), len(text) + 1)] + b"".join(rng.choice(PARTS) for _ in range(2))
        fresh = Parser(language.grammar()).parse(text)
        found = [
            [(one.grammar_id, one.byte_range) for one in leaves(tree.root_node, len(front))]
            for tree in (reparser.parse(text), fresh)
        ]
        assert found[0] == found[1], text
