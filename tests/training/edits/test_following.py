"""Releases become examples of a change and what follows it; what teaches nothing is left out."""

from training.edits.following import examples
from training.stored.documents import Document

BEFORE = """import os


def area(width, height):
    return width * height


def volume(width, height, depth):
    return width * height * depth


def border(size):
    return 4 * size
"""


def document(text: str) -> Document:
    return Document("p", "2", "MIT", "p/shapes.py", "python", text)


def test_the_first_change_is_done_and_the_next_one_follows() -> None:
    after = BEFORE.replace("area(width, ", "area(wide, ").replace("return width * height\n", "return wide * height\n")
    (one, *more) = examples(BEFORE, document(after), 0)
    assert (one.old, one.new) == ("def area(width, height):\n", "def area(wide, height):\n")
    assert one.prefix + one.old + one.standing + one.suffix == BEFORE
    assert one.prefix + one.new + one.updated + one.suffix == after
    assert one.follows
    assert [other.follows for other in more] == [False]  # after the last change nothing is to do


def test_a_change_of_several_lines_is_cut_between_them() -> None:
    after = BEFORE.replace("size", "side")
    (one, *_) = examples(BEFORE, document(after), 0)
    assert one.new == "def border(side):\n"
    assert one.updated == "    return 4 * side\n"


def test_what_teaches_nothing_is_left_out() -> None:
    formatted = BEFORE.replace("(width, height):", "(\n    width,\n    height,\n):")
    imports = BEFORE.replace("import os", "import sys")
    numbers = BEFORE.replace("4 * size", "8 * size")
    for after in (formatted, imports, numbers, BEFORE):
        assert examples(BEFORE, document(after), 0) == []


def test_what_takes_a_change_back_does_not_follow_it() -> None:
    lines = BEFORE.splitlines(keepends=True)
    after = "".join([*lines[:4], "    total = width * height\n", "    print(total)\n", lines[4], *lines[5:]])
    moved = "".join([*lines[:3], *lines[4:7], lines[3], *lines[7:]])
    assert all("print" not in one.updated for one in examples(after, document(moved), 0))
    assert not any(one.follows for one in examples(BEFORE, document(moved), 0))
