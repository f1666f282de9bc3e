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
    "1 and $X", "1 == $X", "$X in z", "$X if 1 else 2", "1 if $X else 2", "1 if 2 else $X", "[$X]", "z($X)", "z(k=$X)",
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
