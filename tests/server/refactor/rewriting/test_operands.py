"""An operand that is moved stays one node, for the language and not only for its grammar."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.refactor.bench import Bench

from lacuna_server.refactor.rewriting.refactoring import by_structure

NAMES = st.sampled_from(["a", "b.c", "1", "'s'", "f(a)", "[a]", "{}", "None"])
OPERATORS = st.sampled_from(["+", "**", "@", "|", "<", "==", "in", "is not", "and", "or"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{} {} {}".format, inner, OPERATORS, inner),
        st.builds("{} if {} else {}".format, NAMES, NAMES, inner),
        st.builds("{}{}".format, st.sampled_from(["-", "not ", "await ", "lambda: ", "lambda x: "]), inner),
        st.builds("(yield {})".format, inner),
        st.builds("(x := {})".format, inner),
        st.builds("[i for i in {}]".format, NAMES),
    )


def _parses(text: str) -> bool:
    try:
        ast.parse(f"async def f():\n    x = g({text})")
    except SyntaxError:
        return False
    return True


TEMPLATES = (
    "$X * 2", "2 * $X", "$X ** 2", "2 ** $X", "-$X", "not $X", "await $X", "$X.b", "$X[0]", "$X()", "1 or $X",
    "$X and 1", "1 == $X", "$X in z", "$X if 1 else 2", "1 if $X else 2", "1 if 2 else $X", "[$X]", "z($X)", "z(k=$X)",
    "*$X, 1",
)  # fmt: skip


@given(st.recursive(NAMES, _larger, max_leaves=4).filter(_parses), st.sampled_from(TEMPLATES))
def test_python_reads_a_moved_operand_as_one_node(operand: str, template: str) -> None:
    made = Bench().apply(by_structure("double($X)", template), f"async def f():\n    x = double({operand})\n")
    wanted = ast.dump(ast.parse(operand, mode="eval").body)
    assert wanted in [ast.dump(node) for node in ast.walk(ast.parse(made))]


@pytest.mark.parametrize(
    ("operand", "bracketed"),
    [
        ("async () => {}", True),
        ("x => { y }", True),
        ("a = b", True),
        ("a += b", True),
        ("yield a", True),
        ("a ? b : c", True),
        ("await a", False),
        ("class {}", False),
        ("function () {}", False),
        ("{ a: 1 }", False),
        ("a.b", False),
    ],
)
@pytest.mark.parametrize("template", ["$X * 2", "2 * $X", "!$X", "$X ?? 1", "typeof $X"])
@pytest.mark.parametrize("name", ["a.js", "a.ts", "a.tsx"])
def test_scripts(bench: Bench, name: str, operand: str, template: str, bracketed: bool) -> None:
    text = f"async function* f() {{\n  r = double({operand});\n}}\n"
    written = template.replace("$X", f"({operand})" if bracketed else operand)
    expected = f"async function* f() {{\n  r = {written};\n}}\n"
    assert bench.apply(by_structure("double($X)", template), text, name) == expected


@pytest.mark.parametrize(
    ("name", "template", "before", "after"),
    [
        ("a.js", "$X * 2", "double({ a: 1 });\n", "({ a: 1 }) * 2;\n"),
        ("a.js", "$X.b", "double(class {});\n", "(class {}).b;\n"),
        ("a.js", "$X()", "double(function () {});\n", "(function () {})();\n"),
        ("a.js", "$X.b", "f = () => double({ a: 1 });\n", "f = () => ({ a: 1 }).b;\n"),
        ("a.js", "$X ** 2", "r = double(-a);\n", "r = (-a) ** 2;\n"),
        ("a.js", "$X.b", "r = double(a++);\n", "r = (a++).b;\n"),
        ("a.js", "async () => { $X }", "r = double(a) * 2;\n", "r = (async () => { a }) * 2;\n"),
        ("a.js", "$X, 1", "r = double(a) * 2;\n", "r = (a, 1) * 2;\n"),
        ("a.js", "z($X)", "r = double(x => x);\n", "r = z(x => x);\n"),
        ("a.js", "1 ? $X : 2", "r = double(x => x);\n", "r = 1 ? x => x : 2;\n"),
        ("a.c", "2 * $X", "int f() { r = dbl(a = b); }\n", "int f() { r = 2 * (a = b); }\n"),
        ("A.java", "2 * $X", "class A { int r = dbl(a = b); }\n", "2 * (a = b)"),
        ("A.cs", "$X * 2", "class A { int F() { r = dbl(() => {}); } }\n", "(() => {}) * 2"),
        ("A.cs", "2 * $X", "class A { int F() { r = dbl(a = b); } }\n", "2 * (a = b)"),
        ("a.rs", "$X < 1", "fn f() { let r = double(a as usize); }\n", "fn f() { let r = (a as usize) < 1; }\n"),
        ("a.rs", "$X == 1", "fn f() { let r = double(a < b); }\n", "fn f() { let r = (a < b) == 1; }\n"),
        ("a.rs", "$X == 1", "fn f() { double(match a { _ => 1 }); }\n", "fn f() { (match a { _ => 1 }) == 1; }\n"),
        ("a.py", "-$X", "r = double(lambda: 1)\n", "r = -(lambda: 1)\n"),
        ("a.py", "$X", "r = double(x := 1)\n", "r = (x := 1)\n"),
        ("a.py", "await $X", "async def f():\n    r = double(-a)\n", "r = await (-a)\n"),
        ("a.py", "await $X", "async def f():\n    r = double(await a)\n", "r = await (await a)\n"),
    ],
)
def test_other_places_and_languages(bench: Bench, name: str, template: str, before: str, after: str) -> None:
    called = "dbl" if "dbl" in before else "double"  # which is a type in some languages
    assert after in bench.apply(by_structure(f"{called}($X)", template), before, name)
