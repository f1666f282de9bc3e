"""The oracle of a language is its compiler. It finds a text valid or invalid, or cannot tell (None)."""

import shutil

import pytest
from tests.benchmarks.constraint.syntax_oracles import oracle_for

SAID = {
    "python": ((b"x = 1\n", True), (b"return 1\n", False), (b"x = \x00\n", False)),
    "json": ((b"[1]", True), (b"[1,]", False)),
    "javascript": ((b"a();\n", True), (b"a(;\n", False)),
    "bash": ((b"if a; then b; fi\n", True), (b"if a; then\n", False)),
    "c": (
        (b"int f(void) { return 1; }\n", True),
        (b"int f(void) { return 1 }\n", False),
        (b"int f(void) { return a; }\n", True),  # an unknown value is no syntax error
        (b"int f(A b) { return 1; }\nA c d;\n", None),  # after an unknown type the compiler cannot tell
    ),
    "cpp": ((b"int f(A b) { return 1; }\n", True), (b"struct A {\n", False), (b"A f(int b);\nint g( {\n", None)),
}
NEEDS = {"javascript": "node", "bash": "bash", "c": "gcc", "cpp": "g++"}


@pytest.mark.parametrize("language", SAID)
def test_an_oracle_tells_valid_texts_from_invalid_ones(language: str) -> None:
    oracle = oracle_for(language)
    if language in NEEDS and shutil.which(NEEDS[language]) is None:
        assert oracle is None
        return
    assert oracle is not None
    for text, said in SAID[language]:
        assert oracle(text) is said, text


def test_rust_has_no_oracle() -> None:
    assert oracle_for("rust") is None
