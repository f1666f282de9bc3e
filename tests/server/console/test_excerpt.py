import os
from pathlib import Path

from rich.text import Text

from lacuna_model.core.params import Region
from lacuna_server import files
from lacuna_server.console.excerpt import THEME, Excerpt, printable
from lacuna_server.files import FileText

CODE = "".join(f"before{i} = {i}\n" for i in range(20)) + "def f(a):\n\treturn <<fill>> + 1\n" + "after = 1\n" * 20


def document(text: str = CODE) -> tuple[FileText, list[Region]]:
    read = FileText(Path("code.py"), text, os.stat(__file__))
    return read, files.marked(read, 96)


def test_an_excerpt_keeps_the_lines_around_the_gap() -> None:
    text = Excerpt(*document(), 2, colour=False).render([Text("a")])
    assert text.plain == "before19 = 19\ndef f(a):\n\treturn a + 1\nafter = 1\nafter = 1\n"


def test_gaps_far_apart_are_joined_by_a_mark() -> None:
    read, regions = document("a = <<fill>>\n" + "x = 1\n" * 20 + "b = <<fill>>\n")
    shown = Excerpt(read, regions, 1, colour=False).render([Text("a")] * 2)
    assert shown.plain == "a = a\nx = 1\n⋮\nx = 1\nb = a\n"


def test_highlighting_changes_no_character() -> None:
    read, regions = document("\n\n  x = '''\n\n<<fill>>\n\n'''\n\n\n" + CODE)
    plain = Excerpt(read, regions, colour=False).render([Text("a * 2")] * 2)
    assert Excerpt(read, regions).render([Text("a * 2")] * 2).plain == plain.plain


def test_every_colour_can_be_read_on_white_and_on_black() -> None:
    styles = THEME.style_map.values()
    assert {style.color.name for style in styles if style.color} == {"red", "green", "magenta", "cyan", "default"}


def test_control_characters_never_reach_the_terminal() -> None:
    assert printable("\ufeffa\r\n\tb\x1b[31m\x07\x7f\x9b") == "a\n\tb␛[31m␇␡�"
