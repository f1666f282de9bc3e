"""All gaps of a document share its brackets: what one gap leaves open is open in the text after it."""

from collections.abc import Sequence
from itertools import accumulate

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax.text import nesting
from lacuna_model.syntax.text.balance import Balance
from lacuna_model.syntax.text.scan import Bracket


def targets(name: str, pieces: Sequence[str]) -> list[str]:
    """The closers of the brackets that are open after each gap between the pieces, outermost first."""
    language = require(name)
    places = list(accumulate(len(piece) for piece in pieces[:-1]))
    balance = Balance("".join(pieces).encode(), [(place, place) for place in places], language.lexicon)
    sides = [balance.sides(gap) for gap in range(len(places))]
    return [b"".join(bracket.closer for bracket in side.target.stack).decode() for side in sides]


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
        pytest.param(
            "java",
            (
                "package a;\n\n",
                "\n    int f() {\n        return 1;\n    }\n\n",
                "\n        return 2;\n    }\n\n    int x;\n\n",
                "\n        return 3;\n    }\n}\n",
            ),
            ["}", "}}", "}}"],
            id="a closer among a block's lines is not its own",
        ),
        pytest.param(
            "go",
            ("package a\n\n", "\n\ta int\n}\n\nfunc f() {\n\tg()\n}\n\n", "\n\t}\n\treturn nil\n}\n"),
            ["}", "}}"],
            id="what stands at the top level is in no block",
        ),
    ],
)
def test_the_gaps_together_open_and_close_the_brackets_of_the_text(
    name: str, pieces: Sequence[str], wanted: Sequence[str]
) -> None:
    assert targets(name, pieces) == list(wanted)


def test_some_open_brackets_are_kept_and_others_opened_anew() -> None:
    pieces = (b"func f() {\n\tt := []struct {\n\t\ta int\n", b"\n\t\ta: 1,\n\t}, {\n\t\ta: 2,\n\t}}\n}\n")
    sides = Balance(b"".join(pieces), [(len(pieces[0]), len(pieces[0]))], require("go").lexicon).sides(0)
    assert (len(sides.left.stack), sides.target.kept, len(sides.target.stack)) == (2, 1, 3)


def test_deeply_nested_brackets_are_all_closed_or_opened() -> None:
    deep = "".join("  " * depth + "{\n" for depth in range(20))
    assert targets("javascript", (deep, "\nf();\n")) == [""]
    closing = "".join("  " * depth + "}\n" for depth in range(19, -1, -1))
    assert targets("javascript", ("f();\n", "\n" + closing)) == ["}" * 20]


def test_the_number_of_steps_for_a_text_of_many_closers_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    misfit = nesting._misfit

    def counted(opener: Bracket, closer: Bracket) -> float:
        nonlocal asked
        asked += 1
        return misfit(opener, closer)

    monkeypatch.setattr(nesting, "_misfit", counted)
    targets("javascript", ("f();\n", *["}\n" * 2000] * 4))
    assert asked < 400_000
