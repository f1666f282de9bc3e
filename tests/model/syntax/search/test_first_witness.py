"""How long a first witness is searched for, and in how many calls."""

import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import first_fill, require
from tests.model.syntax.test_witness import constraint_of, open_view

from lacuna_model.core.constraint import Commit, GapView
from lacuna_model.syntax import witness
from lacuna_model.syntax.search import first_witness


def test_a_closed_gap_with_an_invalid_fill_is_searched_only_once(tokens: SmallTokens) -> None:
    constraint = constraint_of("f(1|\ng(2|\n", "python", tokens)
    (bracket,) = tokens.encode("]")
    gaps = [GapView((), (bracket, tokens.eog_id, None, None), closed=True), open_view()]
    proposal = [Commit(1, 0, 5)]
    first = constraint.foresee([open_view(), open_view()])
    assert all(fill.startswith(")") for fill in first)
    for _ in range(4):
        constraint.admit(gaps, proposal)
        assert constraint._first.attempts <= 1


def test_an_interrupted_search_continues_in_the_next_call(tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = constraint_of("f(|)\n", "python", tokens)
    with monkeypatch.context() as patched:
        patched.setattr(witness, "CALL_SECONDS", 0.0)
        for _ in range(first_witness.MAX_BROKEN_OFF):
            assert constraint.admit([open_view()], [Commit(0, 0, 5)]) == []
            assert constraint._first.attempts == 0
        assert constraint.admit([open_view()], [Commit(0, 0, 5)]) == []
        assert constraint._first.attempts == 1  # from now on the calls count as attempts
    assert constraint.admit([open_view()], [Commit(0, 0, 5)])


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        pytest.param(
            "python", "def f():\n    @g(1)\n", "\n        return 1\n    x = 2\n", id="body of what is decorated"
        ),
        pytest.param("python", "def f():\n    @g(1)\n", "\n    x = 2\n", id="decorator without a body"),
        pytest.param(
            "python",
            "class A:\n    x = 1\n\n",
            "\n        *args: t.Any,\n        y: int,\n    ) -> int:\n        return 1\n",
            id="parameters",
        ),
        pytest.param(
            "python", "def f():\n    if x:\n", "\n            a=e,\n        ) from e\n    return 1\n", id="raise from"
        ),
        pytest.param(
            "rust",
            "fn f(x: A) -> u8 {\n    match x {\n        A::B => {\n            1\n        }\n",
            "\n            2\n        }\n        A::D => {\n            3\n        }\n    }\n}\n",
            id="arm of a match",
        ),
        pytest.param(
            "rust",
            "fn f() {\n    g(A {\n        x: 1,\n",
            "\n            .map(|y| y),\n        z: 2,\n    });\n}\n",
            id="field",
        ),
        pytest.param(
            "rust",
            "fn f() {\n    assert!(\n        a,\n",
            "\n        x: f.x(),\n    });\n}\n",
            id="value with fields",
        ),
        pytest.param(
            "javascript",
            "switch (x) {\n",
            "\n    break;\n  }\n  case 2: {\n    break;\n  }\n}\n",
            id="first case",
        ),
        pytest.param("rust", "fn f(x: u8) {\n    match x {\n", "\n    }\n}\n", id="first arm"),
        pytest.param("typescript", "export type A = Required<\n", "\n  x: 5,\n};\n\nlet y = 1;\n", id="type left open"),
        pytest.param("rust", "fn f() {\n    g(", '\n"quoted" {{x}}\n"#);\n}\n', id="raw string"),
        pytest.param("c", "#ifdef A\nint x;\n", "\nint y;\n", id="condition left open"),
        pytest.param("c", "int x;\n", "\nint y;\n#endif\n", id="end of a condition"),
        pytest.param("c", "#if A\n#if B\nint x;\n", "\n  return 1;\n}\n#endif\n", id="condition and function"),
        pytest.param(
            "c",
            "void f(int x) {\n  if (x) {\n    if (x > 1)\n",
            "\n\n  x = 1;\n}\n\nint y;\n",
            id="header without braces",
        ),
        pytest.param(
            "c",
            "void f(int x) {\n  if (x) {\n",
            "\n      x = 1;\n    } else if (x) {\n      x = 2;\n    }\n  } else {\n    x = 3;\n  }\n}\n",
            id="two choices opened",
        ),
        pytest.param(
            "c",
            "void f(int x)\n{\n  while (x)\n  {\n    x =\n",
            "\n  y = 1;\n}\n",
            id="value on a line of its own",
        ),
        pytest.param(
            "c",
            "void f(int x) {\n  if (x) {\n    if (y) {\n      g(x,\n",
            "\n  } else {\n    y = 1;\n  }\n}\n",
            id="statement in a block that ends",
        ),
        pytest.param(
            "cpp",
            "class A : B {\n  A(int x) :\n",
            "\n  void g() { h(); }\n};\n",
            id="what a constructor sets up",
        ),
        pytest.param(
            "rust",
            "fn f() {\n    g(\n        |a: &A,\n         b: &B,\n",
            "\n            h()?;\n            Ok(())\n        },\n    );\n}\n",
            id="parameters of a closure",
        ),
        pytest.param(
            "javascript",
            "function f(x) {\n",
            "\n      x.g()) return h(x)\n  else if (x.i()) return j(x)\n}\n",
            id="rest of a condition",
        ),
        pytest.param(
            "python",
            "x = f(\n    1,\n",
            '\n    Some words here. More words.\n    """\n    import b\n\n    return 1\n',
            id="docstring of a function",
        ),
        pytest.param(
            "go",
            "package a\n\nfunc f() {\n",
            "\n\t\ta: 1,\n\t}, {\n\t\ta: 2,\n\t}}\n}\n",
            id="list of values",
        ),
        pytest.param(
            "go",
            "package a\n\nfunc f() {\n\tt := []struct {\n\t\ta int\n",
            "\n\t\ta: 1,\n\t}, {\n\t\ta: 2,\n\t}}\n}\n",
            id="list of values of a type left open",
        ),
    ],
)
def test_a_fill_is_found_before_anything_is_proposed(tokens: SmallTokens, name: str, before: str, after: str) -> None:
    assert first_fill(before, after, require(name), tokens) is not None
