"""Gaps with the lines around them, printed once or shown live while they are filled."""

import itertools
import sys
import time
from collections.abc import Generator, Iterator, Sequence

from rich.color import Color
from rich.console import Console
from rich.live import Live
from rich.style import Style
from rich.syntax import ANSI_LIGHT, ANSISyntaxTheme, Syntax
from rich.text import Text

from lacuna_model.core.context import finished
from lacuna_model.core.params import InfillResult, Region, SlotView, Snapshot
from lacuna_server.files import BOM, FileText

TAB_SIZE = 4
# The terminal's own colours; those that cannot be read on black or on white are replaced.
REPLACED = {"blue": "magenta", "bright_blue": "magenta", "bright_red": "red", "white": "default", "yellow": "green"}


THEME = ANSISyntaxTheme(
    {
        token: style + Style(color=REPLACED.get(style.color.name) if style.color else None)
        for token, style in ANSI_LIGHT.items()
    }
)
# Escape sequences in a file must not reach the terminal: control characters are shown as symbols.
CONTROLS = (
    {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"}
    | {0x0D: None, 0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)


def printable(text: str) -> str:
    """Returns the text with visible control characters and without carriage returns and BOM."""
    return text.replace(BOM, "").translate(CONTROLS)


class Excerpt:
    """The text outside the gaps, cut to ``context`` lines on each side of every gap, and highlighted once.

    ``context`` None keeps the whole text.
    """

    def __init__(self, document: FileText, regions: Sequence[Region], context: int | None = None) -> None:
        data = document.text.encode()
        bounds = [0, *(offset for region in regions for offset in (region.start, region.end)), len(data)]
        outside = [data[start:end].decode() for start, end in zip(bounds[::2], bounds[1::2], strict=True)]
        cut = [_cut(text, context, first=i == 0, last=i == len(regions)) for i, text in enumerate(outside)]
        lexer = Syntax.guess_lexer(str(document.path), document.text)
        syntax = Syntax("", lexer, theme=THEME, background_color="default", tab_size=0)  # tabs stay
        # Pygments adds a newline at the end.
        self._pieces = [syntax.highlight(text)[: len(text)] for text in map(printable, cut)]

    def render(self, gaps: Sequence[Text]) -> Text:
        """Returns the excerpt with these texts in its gaps; it ends with a newline."""
        text = Text(tab_size=TAB_SIZE, no_wrap=True)
        for piece, gap in itertools.zip_longest(self._pieces, gaps, fillvalue=Text()):
            text.append_text(piece).append_text(gap)
        return text if text.plain.endswith("\n") else text.append("\n")


def _cut(text: str, context: int | None, *, first: bool, last: bool) -> str:
    """Cuts a piece to its lines next to a gap, ``context`` whole lines and the partial line beside the gap."""
    lines = text.splitlines(keepends=True)
    if text.endswith("\n"):
        lines.append("")
    if context is None or len(lines) <= context * (1 if first or last else 2) + 1:
        return text
    head = "" if first else "".join(lines[: context + 1])
    tail = "" if last else "".join(lines[-context - 1 :])
    return head + ("" if first or last else "⋮\n") + tail


MASK = "·"
FRAMES_PER_SECOND = 12
CONTEXT_LINES = 4
DONE_STYLE = "bold green"
# The colours of confidence 0, 0.5 and 1, as bright as each other, so that all can be read on black and on white.
UNSURE, HALF_SURE, SURE = (206, 62, 62), (150, 110, 0), (22, 136, 62)


def follow(
    console: Console, document: FileText, regions: Sequence[Region], stream: Generator[Snapshot, None, InfillResult]
) -> InfillResult:
    """Shows every snapshot of a stream and returns its result; where there is no terminal, only what it took."""
    if not console.is_terminal:
        result: InfillResult = finished(stream)
        console.print(summary_line(result), soft_wrap=True)
        return result
    lines = min(CONTEXT_LINES, max(1, console.height // (2 * len(regions) + 2)))
    excerpt, started = Excerpt(document, regions, lines), time.monotonic()
    with Live(console=console, refresh_per_second=FRAMES_PER_SECOND, vertical_overflow="crop") as live:
        while True:
            try:
                snapshot = next(stream)
            except StopIteration as end:
                result = end.value
                break
            gaps = [gap_text(slots, fill) for slots, fill in zip(snapshot.slots, snapshot.fills, strict=True)]
            live.update(excerpt.render(gaps).append(status_line(snapshot, time.monotonic() - started)))
        is_filled = result.status != "no_valid_fill"
        summary = Text(summary_line(result), style="bold")
        if is_filled and sys.stdout.isatty():  # the filled file is printed there next
            live.update(summary, refresh=True)
        else:
            style = DONE_STYLE if is_filled else "dim"
            fills = [Text(printable(fill), style=style) for fill in result.fills]
            live.update(excerpt.render(fills).append(summary), refresh=True)
    return result


def gap_text(slots: Sequence[SlotView], fill: str) -> Text:
    """Returns the text of one gap of a snapshot: its fill where the gap was filled earlier, else its slots.

    These are shown up to the gap's committed end, red to green by confidence, drafts in italics. The first slot may
    begin with text of the prefix, because the token at the border is generated again. The fill does not include that
    text, and neither does the view.
    """
    if not slots:
        return Text(printable(fill), style=DONE_STYLE)
    text, written = Text(), ""
    for slot in up_to_end(slots):
        written += slot.text
        if slot.state == "mask":
            text.append(MASK, style="dim")
        else:
            text.append(printable(slot.text), style=slot_style(slot))
    repeated = len(written) - len(fill) if written.endswith(fill) else 0
    return text[len(printable(written[:repeated])) :]


def up_to_end(slots: Sequence[SlotView]) -> Iterator[SlotView]:
    """Returns the slots before the committed end of the gap; later slots are not part of the fill."""
    return itertools.takewhile(lambda slot: slot.text or slot.state != "committed", slots)


def slot_style(slot: SlotView) -> Style:
    """Returns the style of a slot: from red over ochre to green by confidence; bold once committed, else italic."""
    confidence = min(1.0, max(0.0, slot.confidence))
    low, high = (UNSURE, HALF_SURE) if confidence < 0.5 else (HALF_SURE, SURE)
    share = 2 * confidence % 1 if confidence < 1 else 1.0
    colour = Color.from_rgb(*(start + share * (end - start) for start, end in zip(low, high, strict=True)))
    committed = slot.state == "committed"
    return Style(color=colour, bold=committed, italic=not committed)


def status_line(snapshot: Snapshot, seconds: float) -> Text:
    """Returns step, committed slots and speed so far."""
    slots = [slot for gap in snapshot.slots for slot in up_to_end(gap)]
    committed = sum(slot.state == "committed" for slot in slots)
    rate = committed / seconds if seconds > 0 else 0.0
    said = f"step {snapshot.step}  {committed}/{len(slots)} slots  {seconds:.1f} s  {rate:.3g} tok/s"
    return Text(said, style="italic")


def summary_line(result: InfillResult) -> str:
    """Returns one line with the fill's status, size, passes and time."""
    stats = result.stats
    rate = 1000 * stats.tokens / stats.ms if stats.ms > 0 else 0.0
    return f"{result.status}: {stats.tokens} tokens in {stats.nfe} passes, {stats.ms / 1000:.2f} s, {rate:.3g} tok/s"
