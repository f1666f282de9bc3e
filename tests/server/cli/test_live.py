import io
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from rich.console import Console
from rich.style import Style
from rich.text import Text

from lacuna_model.core.params import FillStats, InfillResult, Region, SlotView, Snapshot
from lacuna_server import files
from lacuna_server.cli import live
from lacuna_server.cli.live import Excerpt, LiveView, printable
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
    text = Excerpt(*document(), 2, colour=False).render([Text("a")])
    assert text.plain == "before19 = 19\ndef f(a):\n\treturn a + 1\nafter = 1\nafter = 1\n"


def test_control_characters_never_reach_the_terminal() -> None:
    assert printable("\ufeffa\r\n\tb\x1b[31m\x07\x7f\x9b") == "a\n\tb␛[31m␇␡\ufffd"


def brightness(style: Style) -> float:
    """The relative luminance of a style's colour, as WCAG has it."""
    assert style.color is not None
    assert style.color.triplet is not None
    parts = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in style.color.triplet.normalized
    ]
    return float(sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True)))


def test_every_confidence_can_be_read_on_white_and_on_black() -> None:
    for percent in range(-10, 111, 5):
        bright = brightness(live.slot_style(SlotView("x", "draft", percent / 100)))
        assert min(1.05 / (bright + 0.05), (bright + 0.05) / 0.05) > 4


def test_slots_are_coloured_by_state_and_confidence_up_to_the_end_of_the_gap() -> None:
    text = live.slots_text(SLOTS)
    assert text.plain == f"a *{live.MASK}"
    sure, draft = live.slot_style(SLOTS[0]), live.slot_style(SLOTS[1])
    assert (sure.bold, sure.italic, draft.bold, draft.italic) == (True, False, False, True)
    assert sure.color is not None
    assert draft.color is not None
    assert sure.color.triplet is not None
    assert sure.color.triplet.green > sure.color.triplet.red
    assert draft.color.triplet is not None
    assert draft.color.triplet.red > draft.color.triplet.green


def test_a_terminal_shows_the_fill_and_the_statistics() -> None:
    console, written = screen(terminal=True)
    with LiveView(console, *document()) as view:
        assert view.follow(stream()) is RESULT
    shown = written.getvalue()
    assert "a * 2" in shown
    assert "ok: 12 tokens in 7 passes, 0.20 s, 60 tok/s" in shown
    with LiveView(console, *document()) as view:
        view.follow(stream(InfillResult("no_valid_fill", (), FillStats())))
    assert "no_valid_fill: 0 tokens" in written.getvalue()


def test_the_file_is_left_to_who_prints_it_on_the_same_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    console, written = screen(terminal=True)
    with LiveView(console, *document()) as view:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        view.follow(stream())
    assert "a * 2" not in written.getvalue()
    assert "ok: 12 tokens in 7 passes" in written.getvalue()


def test_without_a_terminal_there_are_occasional_lines_and_no_escape_sequences() -> None:
    console, written = screen(terminal=False)
    times = iter([0.0, 0.0, 0.1, 0.6, 0.7])
    with LiveView(console, *document(), clock=lambda: next(times)) as view:
        view.follow(stream())
    lines = written.getvalue().splitlines()
    assert lines == [
        "step 2  1/3 slots  0.6 s  1.67 tok/s",
        "ok: 12 tokens in 7 passes, 0.20 s, 60 tok/s",
    ]
