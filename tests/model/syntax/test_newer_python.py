"""Python that is newer than the interpreter is judged by all but what is newer."""

import sys

import pytest

from lacuna_model.syntax.newer_python import NEWEST, without_newer
from lacuna_model.syntax.oracle import Neutral, python_compiles, python_program

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


@pytest.mark.parametrize("text", NEWER)
def test_newer_syntax_is_rewritten_line_by_line(text: str) -> None:
    older = without_newer(text.encode())
    assert older is not None
    assert older.count(b"\n") == text.count("\n")
    assert python_compiles(text.encode())


@pytest.mark.parametrize("text", NEWER)
def test_all_the_rest_is_judged_still(text: str) -> None:
    lines = text.encode()
    assert python_program(lines + b"return 1\n", [(len(lines), len(lines) + 8)]) is not None
    assert python_program(lines + b"x = 1\n", [(len(lines), len(lines) + 5)]) is None


@pytest.mark.parametrize("text", ['a = f"{b +}"\n', 'a = f"{}"\n', "try:\n    pass\nexcept A, B as c:\n    pass\n"])
def test_what_no_version_takes_is_refused(text: str) -> None:
    assert not python_compiles(text.encode())


def test_python_that_is_not_newer_is_left_alone() -> None:
    assert without_newer(b'a = f"{b}"\ntype = 1\ntype(a)\n') is None


def test_the_compiler_is_believed_up_to_where_it_stops_whatever_is_filled_in() -> None:
    before, after = b"y = ", b"\nx = = 3\n"
    neutral = Neutral([before, after])

    def refused(text: bytes) -> bool:
        return python_program(before + text + after, [(len(before), len(before) + len(text))], neutral) is not None

    assert not refused(b"f(1)")
    assert refused(b"1 if 2")
    assert refused(b"f(a b)")


def test_a_try_that_has_no_clauses_yet_is_no_fault_of_a_line_in_it() -> None:
    before, after = b"try:\n    y = ", b"\nz = 1\n"
    text = before + b"1" + after
    span = len(before), len(before) + 1
    assert python_program(text, [span], Neutral([before, after])) is None
    assert python_program(text, [span]) is not None  # where a fill of many lines may still write them
