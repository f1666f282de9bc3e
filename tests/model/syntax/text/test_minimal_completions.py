"""The shortest texts between an unfinished fill and its suffix."""

import pytest
from tests.model.syntax.drive import between, require


@pytest.mark.parametrize(
    ("before", "fill", "after"),
    [
        ("x = foo(a, ", "b", "\ny = 1\n"),
        ("x = [1, {2: ", "", "\ny = 1\n"),
        ("if a", "", "\ny = 1\n"),
        ("def f(self, a", "", "\n    return a\n"),
        ('x = "abc', " d", "\n"),
        ("class A:\n    def f(self):\n        if x:\n", "", "        return 1\n"),
        ("try:\n    x = 1\n", "", "y = 2\n"),
        ("try:\n    ", "x()", "\nexcept E:\n    pass\n"),
        ("for x in y:\n    ", "a = 1\n", "print(a)\n"),
        ("x = (", "", ", 3)\n"),
        ("def f():\n    a = 1\n    ", "", " in x:\n        print(1)\n"),
    ],
)
def test_a_valid_completion_is_found(before: str, fill: str, after: str) -> None:
    document, closer = between(before, after, require("python"))
    texts = [fill.encode() + closing for closing in closer.completions(fill.encode())]
    assert any(document.check([text]).valid for text in texts)
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    ("before", "fill", "after", "completion"),
    [
        ("for a in b:", "\n    if a:", "\n        print(a)\n", ""),
        ("for a in b:", "\n    if a:", "\n    print(a)\n", "x"),
    ],
    ids=["block-follows", "no-block-follows"],
)
def test_the_first_valid_completion_adds_only_what_is_missing(
    before: str, fill: str, after: str, completion: str
) -> None:
    document, closer = between(before, after, require("python"))
    found = next(text for text in closer.completions(fill.encode()) if document.check([fill.encode() + text]).valid)
    assert found.strip() == completion.encode()


@pytest.mark.parametrize(
    ("name", "before", "after", "completion"),
    [
        pytest.param("php", "<?php\nif (a()) {\n    b(1", "\n", b");}", id="in a block"),
    ],
)
def test_a_completion_ends_an_open_statement(name: str, before: str, after: str, completion: bytes) -> None:
    document, closer = between(before, after, require(name))
    assert next(text for text in closer.completions(b"") if document.check([text]).valid) == completion


@pytest.mark.parametrize(
    ("before", "after"), [("@b(\n    c,\n", "\n    d = 1\n"), ("class A:\n    @b(c=\n", "\n        d = 1\n")]
)
def test_a_function_is_written_after_a_decorator(before: str, after: str) -> None:
    document, closer = between(before, after, require("python"))
    valid = next(text for text in closer.completions(b"") if document.check_fresh([text]).valid)
    assert b"def x():" in valid
