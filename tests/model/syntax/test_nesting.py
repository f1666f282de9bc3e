"""All gaps of a document share its brackets: what one leaves open another has to find so."""

from collections.abc import Sequence
from itertools import accumulate

import pytest

from lacuna_model.syntax import language_for
from lacuna_model.syntax.balance import Balance


def targets(name: str, pieces: Sequence[str]) -> list[str]:
    """The closers of what each gap between the pieces leaves open, outermost first."""
    language = language_for(name=name)
    assert language is not None
    places = list(accumulate(len(piece) for piece in pieces[:-1]))
    balance = Balance("".join(pieces).encode(), [(place, place) for place in places], language.lexicon)
    sides = [balance.sides(gap) for gap in range(len(places))]
    return [b"".join(bracket.closer for bracket in side.target).decode() for side in sides]


@pytest.mark.parametrize(
    ("name", "pieces", "wanted"),
    [
        pytest.param(
            "cpp",
            (
                "#include <a>\n\n",
                "\n  return f(x);\n}\n\nclass A {\n public:\n  void g() {\n    for (;;) {\n      // x\n",
                "\n      y();\n    }\n  }\n};\n}  // namespace\n}  // namespace b\n",
            ),
            ["}}}", "}}}}}"],
            id="namespaces are opened by the first gap",
        ),
        pytest.param(
            "typescript",
            ("class A {\n  constructor(\n    a: B,\n", "\n    this.b = 1;\n    this.c = 2;\n", "\n  }\n}\n"),
            ["}}", "}}"],
            id="no statement stands in a parenthesis",
        ),
        pytest.param(
            "java",
            ("package a;\n\n", "\n    private int x;\n", "\n    int f() {\n        return x;\n    }\n\n", "\n}\n"),
            ["}", "}", "}"],
            id="a line that stands deep is in a block",
        ),
        pytest.param(
            "c",
            (
                "void f(void) {\n  g(1);\n",
                "\n                int x, int y) {\n  char *z;\n\n  switch (x) {\n",
                "\n  }\n}\n",
            ),
            [")", "}}"],
            id="a block stands no further left than the one around it",
        ),
        pytest.param(
            "javascript",
            ("function f(x) {\n  if (x) {\n    g();\n  }\n", "\n      h();\n", "\n    }\n  }\n}\n"),
            ["}}}", "}}}"],
            id="a line that stands two levels deep is in two blocks",
        ),
    ],
)
def test_gaps_share_the_brackets(name: str, pieces: Sequence[str], wanted: Sequence[str]) -> None:
    assert targets(name, pieces) == list(wanted)
