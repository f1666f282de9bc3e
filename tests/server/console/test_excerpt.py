import os
from pathlib import Path

from rich.text import Text

from lacuna_model.core.params import Region
from lacuna_server import files
from lacuna_server.console.live import Excerpt, printable
from lacuna_server.files import FileText

CODE = "".join(f"before{i} = {i}\n" for i in range(20)) + "def f(a):\n\treturn <<fill>> + 1\n" + "after = 1\n" * 20


def document(text: str = CODE) -> tuple[FileText, list[Region]]:
    read = FileText(Path("code.py"), text, os.stat(__file__))
    return read, files.marked(read, 96)


def test_an_excerpt_keeps_the_lines_around_the_gap() -> None:
    text = Excerpt(*document(), 2, colour=False).render([Text("a")])
    assert text.plain == "before19 = 19\ndef f(a):\n\treturn a + 1\nafter = 1\nafter = 1\n"


def test_control_characters_never_reach_the_terminal() -> None:
    assert printable("\ufeffa\r\n\tb\x1b[31m\x07\x7f\x9b") == "a\n\tb␛[31m␇␡�"
