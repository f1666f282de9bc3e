from collections.abc import Iterator
from pathlib import Path

import pytest

from lacuna_model.core.params import Snippet
from lacuna_model.snippets.definitions import CursorRows
from lacuna_model.snippets.format import PieceCounter
from lacuna_model.snippets.packages.index import PackageIndex
from lacuna_model.snippets.signatures import SHARE, Signatures, fitting
from lacuna_model.snippets.sources import Sources

PAPER = """\
class Sheet:
    def __init__(self, width: int, height: int = 1) -> None: ...
    def cut(self, at: int) -> Sheet: ...
    def fold(self) -> Sheet: ...
def glue(a, b): ...
def gluten(a): ...
def fold_sheet(a): ...
""" + "".join(f"def other{number}(): ...\n" for number in range(20))
HEAD = """\
import paper
import paper as pp
from paper import Sheet, glue
from shop import Till


def run(sheet: Sheet, till: Till):
"""


@pytest.fixture
def packages(tmp_path: Path) -> PackageIndex:
    site = tmp_path / ".venv" / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    (site / "paper.pyi").write_text(PAPER)
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    return PackageIndex(tmp_path)


def found(packages: PackageIndex, text: str) -> Iterator[Snippet]:
    sources = Sources()
    sources.put("shop.py", "class Till:\n    def pay(self, amount, *, tip=0):\n        return amount\n")
    return Signatures(packages, sources, CursorRows.at(len(text), text.encode(), "main.py", "python")).candidates()


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("    x = glue(1, ", {"def glue(a, b)"}),
        ("    x = glue([(1, 2),\n        3], ", {"def glue(a, b)"}),
        ("    x = Sheet(3)\n    y = 1\n", {"class Sheet(width: int, height: int = 1)"}),
        ("    x = Sheet(3)\n    y = 1\n    z = 1\n", set()),
        ("    pp.glue(1)", {"def glue(a, b)"}),
        ("    paper.glu", {"def glue(a, b)", "def gluten(a)"}),
        ("    y = 1\n    z = 2\n    sheet.cu", {"def cut(at: int) -> Sheet"}),
        ("    own = pp.Sheet(1)\n    y = 1\n    z = 2\n    own.", {"def cut(at: int) -> Sheet", "def fold() -> Sheet"}),
        ("    y = 1\n    z = 2\n    till.", {"def pay(self, amount, *, tip=0)"}),
        ("    unknown.", set()),
    ],
)
def test_the_signatures_of_what_the_last_lines_name(packages: PackageIndex, typed: str, expected: set[str]) -> None:
    snippets = list(found(packages, HEAD + "    a = 1\n    b = 2\n    c = 3\n" + typed))
    assert {line for one in snippets for line in one.text.splitlines()} - {
        "class Sheet(width: int, height: int = 1)"
    } == (expected - {"class Sheet(width: int, height: int = 1)"})
    assert {one.path for one in snippets} <= {"paper.pyi", "shop.py"}


def test_of_what_a_client_tells_the_first_ones_are_taken_that_fit() -> None:
    told = [Snippet("main.py", f"glue{number}(a, b)\n") for number in range(100)]
    taken = fitting(told, PieceCounter(), 40 * SHARE)
    assert taken == tuple(told[: len(taken)])
    assert 1 <= len(taken) < 10
    assert fitting(told, PieceCounter(), 0) == ()


def test_of_many_names_those_come_first_that_share_a_word_with_the_lines_near(
    packages: PackageIndex,
) -> None:
    (snippet,) = found(packages, f"{HEAD}    a = 1\n    b = 2\n    old_sheet = paper.")
    *signatures, last = snippet.text.splitlines()
    assert signatures == ["class Sheet(width: int, height: int = 1)", "def fold_sheet(a)"]
    assert last.startswith("__all__ = ['Sheet', 'fold_sheet', 'glue', ")
    assert len(snippet.text) < 250


def test_types_of_scripts_are_not_offered_as_values_behind_a_dot(packages: PackageIndex, tmp_path: Path) -> None:
    folder = tmp_path / "node_modules" / "glue"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"types": "glue.d.ts"}')
    (folder / "glue.d.ts").write_text(
        "export interface Pasted { a: string; }\nexport declare function paste(a: string): Pasted;\n"
    )
    text = "import * as glue from 'glue';\nconst a = glue."
    cursor = CursorRows.at(len(text), text.encode(), "main.ts", "typescript")
    (snippet,) = Signatures(packages, Sources(), cursor).candidates()
    assert snippet.path == "glue/glue.d.ts"
    assert snippet.text == "function paste(a: string): Pasted\n"
