"""What a fill must write before the suffix: an operand, the head of a block, the closers of the prefix."""

import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import between, first_fill, require

from lacuna_model.syntax.text.suffix_text import RightSide


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        pytest.param(
            "javascript",
            "function f() {\n  if (x) {\n",
            "\n      ? new A(x)\n      : new B(x)\n    } catch (e) {\n      x = e\n    }\n  }\n}\n",
            id="operator on the next line",
        ),
        pytest.param(
            "rust",
            "fn f() {\n",
            "\n            .collect::<Vec<_>>()\n    };\n    for x in 0..8 {\n        g(x);\n    }\n}\n",
            id="call on the next line",
        ),
        pytest.param("typescript", "import {\n  a,\n", "\nimport {\n  b,\n} from 'c';\n", id="import"),
        pytest.param(
            "typescript",
            "function f() {\n  do {\n    if (x) {\n      do {\n        g(1);\n",
            "\n    }\n    h(2);\n  } while (y);\n}\n",
            id="loop with its condition behind",
        ),
        pytest.param("java", "class A {\n  void f() {\n    try {\n", "\n  }\n}\n", id="try without its clauses"),
        pytest.param(
            "go",
            "package a\n\nfunc f() {\n",
            "\n\t}{{\n\t\tx: 1,\n\t}, {\n\t\tx: 2,\n\t}}\n\tg(t)\n}\n",
            id="table of tests",
        ),
        pytest.param("typescript", "", "\n  A,\n  B,\n} from '../c.js'\n\nconst x = 1\n", id="import of several names"),
        pytest.param(
            "go",
            "func f() {\n\tt := []T{{\n\t\tin: x,\n\t}, {\n",
            "\n\t\t\tA int\n\t\t\tB int\n\t\t}{},\n\t\twant: 1,\n\t}}\n\tg(t)\n}\n",
            id="structure in a table",
        ),
        pytest.param(
            "rust",
            "fn f() -> A {\n    g();\n",
            "\n            x: 1,\n            y,\n        },\n        z: 2,\n    }\n}\n",
            id="record in a record",
        ),
        pytest.param(
            "java", "class A {\n  @Override\n", "\n\n  void g() {\n    h();\n  }\n}\n", id="annotation of a method"
        ),
        pytest.param(
            "python",
            "from a import b\n\n\n",
            "\n        )\n\n    def f(self):\n        return 1\n",
            id="call in a method",
        ),
        pytest.param(
            "python",
            "class A:\n    def f(self):\n",
            "\n            .g(x=1)\n            .h(2)\n        )\n        return self\n",
            id="call in a parenthesis",
        ),
        pytest.param(
            "python", "def f(y):\n    ", "\n        for x in y\n    ]\n    return 1\n", id="rest of a comprehension"
        ),
        pytest.param("c", "int a;\n", "\n  if (a) b();\n}\nint c;\n", id="end of a function"),
        pytest.param("java", "import a.b;\n", "\n  void f() {}\n}\n", id="end of a class"),
        pytest.param(
            "python", "def f(a, b):\n    c = g(min(a, b)\n          if b\n", "\n    return c\n", id="end of a choice"
        ),
        pytest.param("cpp", "int a;\n", "\nclass B {};\n}  // namespace c\n", id="end of a namespace"),
        pytest.param("javascript", "a();\n", "\n  b: 1,\n  c: d\n})\n", id="fields of an argument"),
    ],
)
def test_a_fill_that_the_suffix_can_follow_is_found(tokens: SmallTokens, name: str, before: str, after: str) -> None:
    assert first_fill(before, after, require(name)) is not None


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        pytest.param("javascript", "const x = f(1)", " + y;\n", id="operator"),
        pytest.param("javascript", "const x = f(1)", ".g(2);\n", id="call"),
        pytest.param("c", "void f(int x) {\n  if (x) {\n    x++;\n  }", " else {\n    x--;\n  }\n}\n", id="clause"),
    ],
)
def test_the_empty_fill_is_tried_first_where_the_prefix_needs_nothing(name: str, before: str, after: str) -> None:
    _, closer = between(before, after, require(name))
    assert next(closer.completions(b"")) == b""


@pytest.mark.parametrize("name", ["rust", "go"])
def test_a_comment_of_many_comment_marks_is_matched_without_backtracking(name: str) -> None:
    marks = b" // a" * 60  # with backtracking this takes 2^60 steps
    right = RightSide(b"\n}\n" + marks + b"\n" + marks + b"\n" + b" #[a]" * 60 + b";\n", require(name).lexicon)
    assert right.openings([b"}"])
