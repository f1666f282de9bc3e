"""Line numbers that have moved are refused; an agent names the text of the lines, or the version of the file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.agents.test_tools import Engine

from lacuna_model.core.errors import RequestError
from lacuna_server.agents.folders import Folders
from lacuna_server.agents.tools import Tools

CODE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef three():\n    return 3\n"
LONGER = "def one():\n    x = 1\n    return x\n"
Make = Callable[..., Tools]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "code.py"
    path.write_text(CODE)
    return path


@pytest.fixture
def make(path: Path) -> Make:
    def made(*fills: str) -> Tools:
        return Tools(Folders([path.parent]), Engine(*fills).fill)

    return made


def test_lines_that_an_edit_has_moved_are_refused_and_nothing_is_written(make: Make, path: Path) -> None:
    tools = make(LONGER)
    assert tools.edit("code.py", "longer", "1:2", apply=True).status == "changed"
    kept = path.read_text()
    for call in (
        lambda: tools.edit("code.py", "ten times", "5:6", apply=True),
        lambda: tools.edit("code.py", "ten times", "2:2", apply=True),
        lambda: tools.fill_gaps("code.py", "6:4", apply=True),
        lambda: tools.syntax_errors("code.py", "5:6", "x"),
    ):
        with pytest.raises(RequestError, match=r"from line 2 on, line numbers are others than before"):
            call()
    assert path.read_text() == kept


def test_the_version_of_the_last_answer_makes_numbers_clear(make: Make, path: Path) -> None:
    tools = make(LONGER, "def two():\n    return 22\n", "def three():\n    return 33\n")
    done = tools.edit("code.py", "longer", "1:2", apply=True)
    tools.edit("code.py", "twice", "6:7", version=done.version, apply=True)
    assert "def two():\n    return 22\n" in path.read_text()
    # The call has named the file as it is: its numbers hold until lines move again.
    assert tools.edit("code.py", "x", "10:11", apply=True).status == "changed"
    assert path.read_text().endswith("def three():\n    return 33\n")


def test_an_old_version_is_refused_even_where_no_line_has_moved(make: Make, path: Path) -> None:
    tools = make("def one():\n    return 11\n", "def one():\n    return 12\n")
    shown = tools.edit("code.py", "eleven", "1:2")
    assert tools.edit("code.py", "x", "1:2", version=shown.version).status == "changed"
    path.write_text(CODE.replace("3", "4"))
    with pytest.raises(RequestError, match=f"is not version {shown.version} any more"):
        tools.edit("code.py", "x", "1:2", version=shown.version)


def test_lines_that_change_places_are_noticed(make: Make, path: Path) -> None:
    path.write_text("a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n")
    tools = make("c = 3.0\n", "e = 5.0\n")
    tools.edit("code.py", "a float", "3:3")
    path.write_text("b = 2\nc = 3\nd = 4\na = 1\ne = 5\n")
    with pytest.raises(RequestError, match="from line 1 on"):
        tools.edit("code.py", "a float", "3:3")
    assert tools.edit("code.py", "a float", "5:5").status == "changed"


def test_the_text_of_the_lines_says_where_they_are(make: Make, path: Path) -> None:
    tools = make(LONGER, "def two():\n    return 22\n", "def three():\n    return 33\n")
    tools.edit("code.py", "longer", "1:2", apply=True)
    two = "def two():\n    return 2\n"
    assert tools.edit("code.py", "twice", "", old_text=two, apply=True).status == "changed"
    assert tools.edit("code.py", "x", "10:11", old_text="def three():\n    return 3", apply=True).status == "changed"
    assert path.read_text() == f"{LONGER}\n\ndef two():\n    return 22\n\n\ndef three():\n    return 33\n"


@pytest.mark.parametrize(
    ("lines", "old_text", "why"),
    [
        ("5:6", "def three():\n    return 3\n", r"lines 5:6 are not old_text; they begin 'def two\(\):'"),
        ("", "    return\n", "no lines with this old_text"),
        ("", "\n", "3 places with this old_text"),
        ("", "", "name lines A:B, or their text"),
    ],
)
def test_a_text_that_is_not_there_is_refused(make: Make, path: Path, lines: str, old_text: str, why: str) -> None:
    path.write_text(CODE + "\nx = 1\n")
    if old_text == "\n":
        path.write_text("a\n\nb\n\nc\n\n")
    with pytest.raises(RequestError, match=why):
        make("x").edit("code.py", "twice", lines, old_text=old_text, apply=True)


def test_line_ends_and_a_byte_order_mark_are_no_difference(make: Make, path: Path) -> None:
    path.write_bytes("\ufeffa = 1\r\nb = 2\r\nc = '\u2028'\r\n".encode())
    tools = make("b = 20\r\n", "a = 10\r\n")
    assert tools.edit("code.py", "x", "2:2", old_text="b = 2\n", apply=True).status == "changed"
    assert tools.edit("code.py", "x", "", old_text="a = 1", apply=True).status == "changed"
    assert path.read_bytes() == "\ufeffa = 10\r\nb = 20\r\nc = '\u2028'\r\n".encode()
