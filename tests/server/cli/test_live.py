import io
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from lacuna_model.core.params import FillStats, InfillResult, Region, SlotView, Snapshot
from lacuna_server import files
from lacuna_server.cli import live
from lacuna_server.cli.live import Excerpt, printable
from lacuna_server.files import FileText

CODE = "".join(f"before{i} = {i}\n" for i in range(20)) + "def f(a):\n\treturn <<fill>> + 1\n" + "after = 1\n" * 20
SLOTS = (
    SlotView("a", "committed", 0.99),
    SlotView(" *", "draft", 0.4),
    SlotView("", "mask", 0.0),
    SlotView("", "committed", 0.9),
    SlotView(" beyond", "draft", 0.1),
)
RESULT = InfillResult("ok", ("a * 2",), FillStats(nfe=7, tokens=12, ms=200.0))


def document(text: str = CODE) -> tuple[FileText, list[Region]]:
    read = FileText(Path("code.py"), text, os.stat(__file__))
    return read, files.marked(read, 96)


def stream(result: InfillResult = RESULT) -> Generator[Snapshot, None, InfillResult]:
    for step in range(1, 4):
        yield Snapshot(step, ("a *",), (SLOTS,))
    return result


def screen(*, terminal: bool) -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    colours = "truecolor" if terminal else None
    console = Console(file=written, force_terminal=terminal, width=100, height=40, color_system=colours)
    return console, written


def test_an_excerpt_keeps_the_lines_around_the_gap() -> None:
    text = Excerpt(*document(), 2).render([Text("a")])
    assert len(text.spans) > 10  # also with tabs, and where a piece ends with its line
    assert text.plain == "before19 = 19\ndef f(a):\n\treturn a + 1\nafter = 1\nafter = 1\n"


def test_control_characters_never_reach_the_terminal() -> None:
    assert printable("\ufeffa\r\n\tb\x1b[31m\x07\x7f\x9b") == "a\n\tb␛[31m␇␡\ufffd"


def test_slots_are_coloured_by_state_and_confidence_up_to_the_end_of_the_gap() -> None:
    text = live.gap_text(SLOTS, "a *")
    assert text.plain == f"a *{live.MASK}"
    (sure, draft, _) = (span.style for span in text.spans)
    assert (str(sure), str(draft)) == ("bold not italic #18873c", "not bold italic #a1640c")


@pytest.mark.parametrize("other", [False, True], ids=["alone", "printed-next"])
def test_a_terminal_shows_the_fill_and_the_statistics(other: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The filled file is left to who prints it on the same terminal."""
    console, written = screen(terminal=True)
    if other:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert live.follow(console, *document(), stream()) is RESULT
    assert ("a * 2" in written.getvalue()) != other
    assert "ok: 12 tokens in 7 passes, 0.20 s, 60 tok/s" in written.getvalue()
    live.follow(console, *document(), stream(InfillResult("no_valid_fill", (), FillStats())))
    assert "no_valid_fill: 0 tokens" in written.getvalue()


def test_without_a_terminal_there_is_a_line_without_escape_sequences() -> None:
    console, written = screen(terminal=False)
    live.follow(console, *document(), stream())
    assert written.getvalue() == "ok: 12 tokens in 7 passes, 0.20 s, 60 tok/s\n"
