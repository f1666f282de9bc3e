"""The live view of a fill in the terminal: the file around each gap, with slots coloured by state and confidence."""

import itertools
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from types import TracebackType

from rich.color import Color
from rich.console import Console
from rich.live import Live
from rich.style import Style
from rich.text import Text

from lacuna_model.core.params import InfillResult, Region, SlotView, Snapshot
from lacuna_server.console.excerpt import Excerpt, printable
from lacuna_server.files import FileText

MASK = "·"
FRAMES_PER_SECOND = 12
PLAIN_SECONDS = 0.5
CONTEXT_LINES = 4
DONE_STYLE = "bold green"
# The colours of confidence 0, 0.5 and 1, as bright as each other, so that all can be read on black and on white.
UNSURE, HALF_SURE, SURE = (206, 62, 62), (150, 110, 0), (22, 136, 62)


class LiveView:
    """Follows a stream of snapshots: draws frames on a terminal, and prints a status line now and then otherwise."""

    def __init__(
        self,
        console: Console,
        document: FileText,
        regions: Sequence[Region],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        lines = min(CONTEXT_LINES, max(1, console.height // (2 * len(regions) + 2)))
        self._excerpt = Excerpt(document, regions, lines, colour=console.is_terminal)
        self._console = console
        self._clock = clock
        self._live = Live(console=console, refresh_per_second=FRAMES_PER_SECOND, vertical_overflow="crop")
        self._started = self._last_line_at = clock()

    def __enter__(self) -> "LiveView":
        self._started = self._last_line_at = self._clock()
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def follow(self, stream: Generator[Snapshot, None, InfillResult]) -> InfillResult:
        """Shows every snapshot of the stream and returns its result."""
        while True:
            try:
                snapshot = next(stream)
            except StopIteration as end:
                result: InfillResult = end.value
                self._finish(result)
                return result
            self._show(snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        now = self._clock()
        status = status_line(snapshot, now - self._started)
        if self._console.is_terminal:
            gaps = [gap_text(slots, fill) for slots, fill in zip(snapshot.slots, snapshot.fills, strict=True)]
            self._live.update(self._excerpt.render(gaps).append(status))
        elif now - self._last_line_at >= PLAIN_SECONDS:
            self._last_line_at = now
            self._console.print(status, soft_wrap=True)

    def _finish(self, result: InfillResult) -> None:
        summary = Text(summary_line(result), style="bold")
        if not self._console.is_terminal:
            self._console.print(summary, soft_wrap=True)
            return
        if sys.stdout.isatty() and result.status != "no_valid_fill":  # the filled file is printed there next
            self._live.update(summary, refresh=True)
            return
        style = "dim" if result.status == "no_valid_fill" else DONE_STYLE
        fills = [Text(printable(fill), style=style) for fill in result.fills]
        self._live.update(self._excerpt.render(fills).append(summary), refresh=True)


def gap_text(slots: Sequence[SlotView], fill: str) -> Text:
    """Returns the text of one gap of a snapshot: its slots, or its fill where the gap was filled earlier.

    The first slot may begin with text of the prefix, because the token at the border is generated again. The fill does
    not include that text, and neither does the view.
    """
    if not slots:
        return Text(printable(fill), style=DONE_STYLE)
    written = "".join(slot.text for slot in up_to_end(slots))
    repeated = len(written) - len(fill) if written.endswith(fill) else 0
    return slots_text(slots)[len(printable(written[:repeated])) :]


def slots_text(slots: Sequence[SlotView]) -> Text:
    """Returns the slots of one gap up to its committed end: red to green by confidence, drafts in italics."""
    text = Text()
    for slot in up_to_end(slots):
        if slot.state == "mask":
            text.append(MASK, style="dim")
        else:
            text.append(printable(slot.text), style=slot_style(slot))
    return text


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
    return Text(
        f"step {snapshot.step}  {committed}/{len(slots)} slots  {seconds:.1f} s  {rate:.3g} tok/s", style="italic"
    )


def summary_line(result: InfillResult) -> str:
    """Returns one line with the fill's status, size, passes, time and corrections."""
    stats = result.stats
    rate = 1000 * stats.tokens / stats.ms if stats.ms > 0 else 0.0
    return (
        f"{result.status}: {stats.tokens} tokens in {stats.nfe} passes, {stats.ms / 1000:.2f} s, {rate:.3g} tok/s, "
        f"{stats.corrections} corrections"
    )
