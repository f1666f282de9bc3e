"""Checks of fills: incremental ones agree with fresh ones, and errors that the text has already are not the fills'."""

import pytest
from tests.model.languages.test_parsing import ENDLESS

from lacuna_model.syntax.document import Document

from .drive import require

GAP = b"<>"
PYTHON = (
    b"def f(a):\n    <>\n    return a\n\n\n"
    + b"def g():\n    pass\n\n\n" * 400
    + b"def h(a):\n    if a:\n        <>\n    return a\n"
)
C = (
    b"int f(int a) {\n  <>\n  return a;\n}\n\n"
    + b"int g();\n\n" * 400
    + b"int h(int a) {\n  if (a) {\n    <>\n  }\n}\n"
)


def cut(name: str, text: bytes) -> Document:
    """A document with empty gaps where the text has marks."""
    parts = text.split(GAP)
    places = [len(b"".join(parts[: number + 1])) for number in range(len(parts) - 1)]
    return Document(b"".join(parts), [(place, place) for place in places], require(name))


@pytest.mark.parametrize(
    ("name", "text", "fills", "valid"),
    [
        ("python", PYTHON, (b"a = [\n        1]", b"a = 2\n        b = (3,\n    4)"), True),
        ("c", C, (b"a = 1;\n  while (a) {\n  }", b"a--;"), True),
        ("python", PYTHON, (b"a = [", b"a = 2"), False),
        ("python", PYTHON, (b"a = 1\n      b = 2", b"a = 2"), False),
        ("python", PYTHON, (b"a = 1", b"break"), False),
        ("c", C, (b"while (a) {", b"a--;"), False),
        ("c", C, (b"a = 1;\n}\n{", b"a--;"), False),
    ],
)
def test_long_files_are_checked_as_afresh(name: str, text: bytes, fills: tuple[bytes, ...], valid: bool) -> None:
    document = cut(name, text)
    for _ in range(2):
        assert bool(document.check(fills)) == bool(document.check_fresh(fills)) == (not valid)
        assert not document.check((b"a = 1;", b"a--;") if name == "c" else (b"a = 1", b"a = 2"))


@pytest.mark.parametrize(
    ("marked", "taken", "refused"),
    [
        (b"class A:\n<>\n        return 1\n", b"    def f(self):", b"    class B:"),
        (b"class A:\n<>\n        else: return 1\n", b"    def f(x):\n        if x:\n            pass",
         b"    if x:\n        if x:\n            pass"),
    ],
)  # fmt: skip
def test_a_header_must_suit_the_block_after_it(marked: bytes, taken: bytes, refused: bytes) -> None:
    far = b"".join(b"def f%d():\n    return %d\n\n\n" % (number, number) for number in range(40))
    document = cut("python", far + marked + b"\n\n" + far)
    assert not document.check([taken])
    assert document.check([refused])


def test_indentation_is_checked() -> None:
    document = cut("python", b"def f(x):\n    if x:\n<>\n    return 1\n")
    for text in (b"        y = 1", b"        y = 1\n        z = 2", b"        pass  # done"):
        assert not document.check([text])
    for text in (
        b"        def g(\n        ):",
        b"    y = 1",
        b"        y = 1\n      z = 2",
        b"        # nothing",
        b"",
        b"        y = 1\n            z = 2",
    ):
        assert document.check([text])
        assert document.check_fresh([text])


def test_a_fill_with_which_no_parse_ends_is_refused() -> None:
    own = cut("tsx", b"const title = 1;\nexport const Box = () => <>;\n")
    for check in (own.check, own.check_fresh):
        assert check([ENDLESS])
        assert not check([b"<a b={c} />"])
