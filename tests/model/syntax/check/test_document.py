"""Checks of fills in a file of which only a part is parsed."""

import pytest
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


@pytest.mark.parametrize(
    ("name", "text", "fills"),
    [
        ("python", PYTHON, (b"a = [\n        1]", b"a = 2\n        b = (3,\n    4)")),
        ("c", C, (b"a = 1;\n  while (a) {\n  }", b"a--;")),
    ],
)
def test_valid_fills_are_found_valid_without_a_parse_of_the_entire_file(
    name: str, text: bytes, fills: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    document = cut(name, text)
    assert len(document.windows) == 2
    with monkeypatch.context() as patch:
        patch.delattr(Document, "check_fresh")
        assert document.check_soon(fills).valid
    assert document.check_fresh(fills).valid


@pytest.mark.parametrize(
    ("name", "text", "fills"),
    [
        ("python", PYTHON, (b"a = [", b"a = 2")),
        ("python", PYTHON, (b"a = 1\n      b = 2", b"a = 2")),
        ("python", PYTHON, (b"a = 1", b"break")),
        ("c", C, (b"while (a) {", b"a--;")),
        ("c", C, (b"a = 1;\n}\n{", b"a--;")),
    ],
)
def test_the_faults_of_invalid_fills_are_those_of_a_fresh_parse(
    name: str, text: bytes, fills: tuple[bytes, ...]
) -> None:
    document = cut(name, text)
    assert document.check_soon(fills) == document.check_fresh(fills)
    assert not document.check_soon(fills).valid


def test_if_the_rest_has_an_error_the_result_is_that_of_a_fresh_parse() -> None:
    document = cut("c", C + b"int x( {\n")
    assert document.check_soon((b"a = 1;", b"a--;")) == document.check_fresh((b"a = 1;", b"a--;"))


MACRO = b"static API int f(const x *);\n\nint g(int a);\n\n"  # the grammar knows no API


def in_line(name: str, marked: bytes) -> Document:
    """A document with one gap at the mark, which is to be filled with a single line."""
    place = marked.index(GAP)
    return Document(marked.replace(GAP, b""), [(place, place)], require(name), in_line=True)


@pytest.mark.parametrize("rest", [b"", b"int h(int b);\n" * 9, b"#ifdef A\n" + MACRO * 9])
def test_a_line_need_not_repair_errors_in_which_it_has_no_part(rest: bytes) -> None:
    document = in_line("c", MACRO * 3 + b"<>\n" + rest + MACRO)
    assert not cut("c", MACRO * 3 + b"<>\n" + rest + MACRO).check_fresh((b"int b;",)).valid
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


def test_a_keyword_must_suit_the_function_around_it() -> None:
    document = Document(b"def f(x):\n    \n", [(14, 14)], require("python"))
    assert document.check([b"return x"]).valid
    assert not document.check([b"y = await x"]).valid


def test_a_fill_must_open_a_function_whose_body_the_suffix_continues() -> None:
    filler = "".join(f"def f{i}():\n    return {i}\n\n\n" for i in range(40))
    before = filler + "class A:\n"
    text = before + "\n        else:\n            return 1\n\n\n" + filler
    document = Document(text.encode(), [(len(before), len(before))], require("python"))
    assert document.check([b"    def f(x):\n        if x:\n            pass"]).valid
    assert not document.check([b"    if x:\n        if x:\n            pass"]).valid


def test_the_gap_before_a_compiler_error_is_blamed() -> None:
    text = b"def f():\n    \n\n\nclass A:\n    \n    if x:\n        y()\n        return 1\n"
    document = Document(text, [(13, 13), (29, 29)], require("python"))
    assert [gap for gap, _ in document.check_fresh([b"pass", b"pass"]).faults] == [1]


@pytest.mark.parametrize(("name", "sound"), [("größe", True), ("a\u2212b", False), ("a•b", False)])
def test_a_name_with_a_symbol_is_invalid(name: str, sound: bool) -> None:
    text = b"let x = ;\nlet y = '\xe2\x88\x92';\n"
    assert Document(text, [(8, 8)], require("javascript")).check([name.encode()]).valid == sound
    quoted = f"'{name}'".encode()
    assert Document(text, [(8, 8)], require("javascript")).check([quoted]).valid
