"""Releases become examples of a change and what follows it; what is in the ledger is not made again."""

from pathlib import Path

import pytest
from tests.training.corpora import Shelf

from training.edits import LEDGER, EditExample, examples, make, path_of, read_ledger
from training.packages import Package, Role
from training.stored import Document, read_structs

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


def test_lines_that_are_inserted_are_not_inserted_again() -> None:
    after = BEFORE.replace("def border(size)", "# around\ndef border(side)").replace("4 * size", "4 * side")
    (one, *_) = examples(BEFORE.replace("def border(size)", "def border(side)"), document(after), 0)
    assert (one.old, one.new, one.updated) == ("", "# around\n", "def border(side):\n    return 4 * side\n")


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


CODE = "\n\n".join(f"def {name}(value):\n    return value.{name} + value.other_{name}" for name in "abcdefgh") + "\n"


@pytest.fixture
def shelf(shelf: Shelf, tmp_path: Path) -> Shelf:
    (tmp_path / "downloads").mkdir()
    changed = CODE.replace("def a(value", "def a(item").replace("return value.a + value.", "return item.a + item.")
    again = changed.replace("b(value)", "b(thing)").replace("value.b", "thing.b")
    for name, texts in {"alpha": (CODE, changed, again), "beta": (CODE, changed), "gamma": (CODE, changed)}.items():
        for version, text in enumerate(texts, 1):
            licence = "GPL-3.0-only" if name == "gamma" else "MIT"
            shelf.add(name, {f"{name}/module.py": text}, f"{version}", licence)
    return shelf


ALPHA = Package("shelf", "alpha", "3", Role.TRAIN)
BETA = Package("shelf", "beta", "2", Role.HELD_OUT)
GAMMA = Package("shelf", "gamma", "2", Role.TRAIN)


def test_the_last_releases_are_compared_and_recorded(shelf: Shelf, tmp_path: Path) -> None:
    found = make([ALPHA, BETA, GAMMA], tmp_path, releases=3, sources={"shelf": shelf})
    alpha, beta, gamma = found
    assert (alpha.versions, beta.versions) == (["3", "2", "1"], ["2", "1"])
    assert beta.dropped == {"not published": 1}
    assert (gamma.examples, gamma.dropped["licence of the package"]) == (0, 2)
    assert read_ledger(tmp_path / LEDGER) == found
    every = list(read_structs(path_of(tmp_path, ALPHA), EditExample))
    assert {one.new for one in every if one.follows} == {"def a(item):\n", "def b(thing):\n"}
    assert len(every) == alpha.examples
    assert path_of(tmp_path, BETA).parent.name == "held_out"
    assert not path_of(tmp_path, GAMMA).exists()


def test_a_later_run_makes_what_the_ledger_lacks(shelf: Shelf, tmp_path: Path) -> None:
    make([BETA], tmp_path, releases=2, sources={"shelf": shelf})
    shelf.asked.clear()
    found = make([BETA, ALPHA], tmp_path, releases=2, sources={"shelf": shelf})
    assert shelf.asked == ["alpha 3", "alpha 2"]
    assert [one.name for one in found] == ["beta", "alpha"]
