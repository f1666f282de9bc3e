"""Code with syntax that is newer than the interpreter is checked by the compiler after that syntax is rewritten."""

import sys

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax.check.compilers import NEWEST, Compiler, python_compiles, without_newer
from lacuna_model.syntax.check.document import Document

pytestmark = pytest.mark.skipif(sys.version_info >= NEWEST, reason="nothing is newer than this interpreter")

NEWER = [
    "type Pair[T] = tuple[T, T]\n",
    "type Pair = (\n    int\n)\n",
    "class Box[T: int](Base):\n    item: T\n",
    "def first[\n    T,\n](xs: list[T]) -> T:\n    return xs[0]\n",
    'a = f"{b["c"]}"\n',
    'a = f"{"\\n".join(b)}" "d"\n',
    'a = f"{\n    b  # why\n}"\n',
    "a = f'{b!r:{c['d']}}'\n",
    'a = t"{b}"\n',
    "try:\n    pass\nexcept A, B:\n    pass\n",
    "try:\n    pass\nexcept* A, B:\n    pass\n",
]


def error(before: str, fill: str, after: str) -> bool:
    """Whether the compiler finds an error of a fill."""
    start, end = len(before.encode()), len((before + fill).encode())
    compiler = Compiler((before + after).encode(), [(start, start)])
    return bool(compiler.faults((before + fill + after).encode(), [(start, end)]))


@pytest.mark.parametrize("text", NEWER)
def test_newer_syntax_is_rewritten_line_by_line(text: str) -> None:
    older = without_newer(text.encode())
    assert older is not None
    assert older.count(b"\n") == text.count("\n")
    assert python_compiles(older)
    assert not python_compiles(text.encode())


@pytest.mark.parametrize("text", NEWER)
def test_the_rest_of_the_file_is_still_checked(text: str) -> None:
    assert error(text, "return 1", "\n")
    assert not error(text, "x = 1", "\n")
    assert error("", "return 1", "\n" + text)
    assert not error("", "x = 1", "\n" + text)


@pytest.mark.parametrize("text", ["x = <|>\ny = 1\n", "x = = 2; z = <|>\n"])
def test_a_document_is_not_newer_if_it_is_not_with_a_neutral_fill(text: str) -> None:
    before, after = text.split("<|>")
    assert error(before, 'f"{b["c"]}"', after)


def test_newer_syntax_in_a_fill_does_not_make_a_document_newer() -> None:
    text, place = b'b = {"c": 1}\na = \n', len(b'b = {"c": 1}\na = ')
    document = Document(text, [(place, place)], require("python"), in_line=True)
    assert document.check_fresh([b"f'{b}'"]).valid
    assert not document.check_fresh([b'f"{b["c"]}"']).valid
    lines = b"type Pair[T] = tuple[T, T]\n"
    document = Document(lines + text, [(place + len(lines), place + len(lines))], require("python"), in_line=True)
    assert document.check_fresh([b'f"{b["c"]}"']).valid


def test_a_large_document_is_newer_although_no_neutral_fill_is_right() -> None:
    before, after = "lines = {\n    1: 1", "\n    2: 2,\n}\n" + "value = other\n" * 4_000 + 'page = t"<p>{lines}</p>"\n'
    assert not error(before, ",", after)
    assert error(before, ";", after)


@pytest.mark.parametrize("depth", [5, 300, 2_000])
def test_strings_in_each_other_are_read_however_many(depth: int) -> None:
    text = "x = " + "f'{" * depth + "y" + "}'" * depth + "\n"
    without_newer(text.encode())
    python_compiles(text.encode())
