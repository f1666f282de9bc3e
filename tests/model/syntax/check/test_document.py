"""Checks of fills in a file of which only a part is parsed."""

import pytest
from tests.model.languages.test_parsing import ENDLESS
from tests.model.syntax.drive import require

from lacuna_model.syntax.check.document import Document

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


FILLS = [
    ("python", PYTHON, (b"a = [\n        1]", b"a = 2\n        b = (3,\n    4)"), True),
    ("c", C, (b"a = 1;\n  while (a) {\n  }", b"a--;"), True),
    ("python", PYTHON, (b"a = [", b"a = 2"), False),
    ("python", PYTHON, (b"a = 1\n      b = 2", b"a = 2"), False),
    ("python", PYTHON, (b"a = 1", b"break"), False),
    ("c", C, (b"while (a) {", b"a--;"), False),
    ("c", C, (b"a = 1;\n}\n{", b"a--;"), False),
]


@pytest.mark.parametrize(("name", "text", "fills", "valid"), FILLS)
def test_an_incremental_check_in_a_long_file_agrees_with_a_fresh_one(
    name: str, text: bytes, fills: tuple[bytes, ...], valid: bool
) -> None:
    document = cut(name, text)
    for _ in range(2):
        assert document.check(fills).valid == document.check_fresh(fills).valid == valid
        assert document.check((b"a = 1;", b"a--;") if name == "c" else (b"a = 1", b"a = 2")).valid


MACRO = b"static API int f(const x *);\n\nint g(int a);\n\n"  # the grammar knows no API


def in_line(name: str, marked: bytes) -> Document:
    """A document with one gap at the mark, which is to be filled with a single line."""
    place = marked.index(GAP)
    return Document(marked.replace(GAP, b""), [(place, place)], require(name), in_line=True)


@pytest.mark.parametrize("rest", [b"", b"int h(int b);\n" * 9, b"#ifdef A\n" + MACRO * 9])
def test_a_line_need_not_repair_errors_in_which_it_has_no_part(rest: bytes) -> None:
    document = in_line("c", MACRO * 3 + b"<>\n" + rest + MACRO)
    for fill, valid in ((b"int b;", True), (b"", True), (b"int b", False), (b"{", False)):
        assert document.check((fill,)).valid == valid
        assert document.check_fresh((fill,)).valid == valid


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"int b = (", b";\n"), (b"int b = (\n", b"\n;\n"), (b"int b = 2 +\n", b"\n;\n"), (b"int b[] = {\n(", b"\n};\n")],
)
def test_a_line_must_repair_an_error_in_which_it_has_a_part(before: bytes, after: bytes) -> None:
    document = in_line("c", MACRO + before + b"<>" + after)
    assert not document.check_fresh((b"",)).valid
    assert document.check_fresh((b"1)" if b"(" in before else b"1",)).valid


def test_a_header_must_suit_the_block_after_it() -> None:
    document = Document(b"class A:\n\n        return 1\n", [(9, 9)], require("python"))
    assert document.check([b"    def f(self):"]).valid
    assert not document.check([b"    class B:"]).valid


def test_a_fill_must_open_a_function_whose_body_the_suffix_continues() -> None:
    filler = "".join(f"def f{i}():\n    return {i}\n\n\n" for i in range(40))
    before = filler + "class A:\n"
    text = before + "\n        else:\n            return 1\n\n\n" + filler
    document = Document(text.encode(), [(len(before), len(before))], require("python"))
    assert document.check([b"    def f(x):\n        if x:\n            pass"]).valid
    assert not document.check([b"    if x:\n        if x:\n            pass"]).valid


@pytest.mark.parametrize(("name", "sound"), [("größe", True), ("a\u2212b", False), ("a•b", False)])
def test_a_name_with_a_symbol_is_invalid(name: str, sound: bool) -> None:
    text = b"let x = ;\nlet y = '\xe2\x88\x92';\n"
    assert Document(text, [(8, 8)], require("javascript")).check([name.encode()]).valid == sound
    quoted = f"'{name}'".encode()
    assert Document(text, [(8, 8)], require("javascript")).check([quoted]).valid


def test_a_fill_with_which_no_parse_ends_is_refused() -> None:
    before, after = b"const title = 1;\nexport const Box = () => ", b";\n"
    own = Document(before + after, [(len(before), len(before))], require("tsx"))
    for check in (own.check, own.check_fresh):
        assert not check([ENDLESS]).valid
        assert check([b"<a b={c} />"]).valid
