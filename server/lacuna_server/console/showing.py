"""Prints fills, excerpts and diffs: highlighted on a terminal, byte for byte elsewhere."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.style import Style
from rich.syntax import ANSI_LIGHT, ANSISyntaxTheme, Syntax
from rich.text import Text

from lacuna_model.commands.output import print_exact
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, InfillResult, Region
from lacuna_model.text import diff
from lacuna_model.text.lines import line_starts
from lacuna_server import files
from lacuna_server.files import BOM, FileText

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


LINES = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")


def lines_at(document: FileText, lines: str) -> tuple[int, int]:
    """Returns the byte offsets of whole lines ``A:B`` or ``A``, counted from 1.

    Raises RequestError for another form and for lines outside the document.
    """
    match = LINES.fullmatch(lines.strip())
    if match is None:
        raise RequestError(f"lines are A:B, such as 10:20, not {lines!r}")
    first, last = int(match[1]), int(match[2] or match[1])
    if not 1 <= first <= last:
        raise RequestError(f"lines are counted from 1, and the first comes before the last; not {lines!r}")
    data = document.text.encode()
    starts = [start for start in line_starts(data) if start < len(data)]
    if last > len(starts):
        raise RequestError(f"line {last} is outside {document.path}, which has {len(starts)} lines")
    ends = [*starts[1:], len(data)]
    return starts[first - 1] or len(files.BOM.encode()) * document.text.startswith(files.BOM), ends[last - 1]


TAB_SIZE = 4
# The terminal's own colours; those that cannot be read on black or on white are replaced.
REPLACED = {"blue": "magenta", "bright_blue": "magenta", "bright_red": "red", "white": "default", "yellow": "green"}


def readable(style: Style) -> Style:
    """Returns a style whose colour can be read on black and on white."""
    name = style.color.name if style.color else ""
    return style + Style(color=REPLACED[name]) if name in REPLACED else style


THEME = ANSISyntaxTheme({token: readable(style) for token, style in ANSI_LIGHT.items()})
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

    def __init__(
        self, document: FileText, regions: Sequence[Region], context: int | None = None, *, colour: bool = True
    ) -> None:
        data = document.text.encode()
        bounds = [0, *(offset for region in regions for offset in (region.start, region.end)), len(data)]
        outside = [data[start:end].decode() for start, end in zip(bounds[::2], bounds[1::2], strict=True)]
        cut = [_cut(text, context, first=i == 0, last=i == len(regions)) for i, text in enumerate(outside)]
        lexer = Syntax.guess_lexer(str(document.path), document.text) if colour else "text"
        syntax = Syntax("", lexer, theme=THEME, background_color="default", tab_size=TAB_SIZE)
        self._pieces = [_highlighted(syntax, printable(text)) for text in cut]
        self.num_gaps = len(regions)

    def render(self, gaps: Sequence[Text]) -> Text:
        """Returns the excerpt with these texts in its gaps; it ends with a newline."""
        text = Text(tab_size=TAB_SIZE, no_wrap=True)
        for i, piece in enumerate(self._pieces):
            text.append_text(piece)
            if i < len(gaps):
                text.append_text(gaps[i])
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


def _highlighted(syntax: Syntax, text: str) -> Text:
    # Pygments strips newlines at the start and adds one at the end.
    body = text.lstrip("\n")
    if not body.strip():
        return Text(text)
    highlighted = syntax.highlight(body)
    highlighted.right_crop(len(highlighted.plain) - len(body))
    lead = Text("\n" * (len(text) - len(body)))
    return lead.append_text(highlighted) if highlighted.plain == body else Text(text)


CONTEXT_LINES = 5
FILL_STYLE = "bold green"


def report(result: InfillResult, file: Path, model: str) -> dict[str, object]:
    """Returns the JSON object of a fill."""
    return {
        "status": result.status,
        "text": result.text,
        "fills": list(result.fills),
        "alternatives": result.alternatives,
        "confidence": result.confidence,
        "stats": result.stats,
        "message": result.message,
        "refused": list(result.refused),
        "file": str(file),
        "model": model,
    }


def in_document(document: FileText, request: InfillRequest, result: InfillResult) -> InfillResult:
    """Returns the result with the document's line endings in its fills and the original bytes outside the gaps."""
    if len(result.fills) != len(request.regions):
        return result
    fills = files.adapted(document, request, result.fills)
    text = document.text if result.status == "no_valid_fill" else files.filled(document, request.regions, fills)
    return msgspec.structs.replace(result, fills=fills, text=text)


def print_fill(document: FileText, regions: Sequence[Region], fills: Sequence[str]) -> None:
    """Prints the fills, highlighted, with the lines around them; without a terminal only the fills as plain text."""
    console = _screen()
    if console.is_terminal:
        console.print(_filled(document, regions, fills, CONTEXT_LINES), end="")
    else:
        print_exact("".join(fill if fill.endswith("\n") else fill + "\n" for fill in fills))


def print_document(document: FileText, regions: Sequence[Region], result: InfillResult) -> None:
    """Prints the whole filled file: highlighted on a terminal, byte for byte otherwise."""
    console = _screen()
    if console.is_terminal:
        console.print(_filled(document, regions, result.fills, None), end="")
    else:
        print_exact(result.text)


def print_diff(document: FileText, text: str) -> None:
    """Prints a short unified diff from the document to ``text``."""
    shown = diff.unified(document.text, text, str(document.path), context=2)
    console = _screen()
    if not console.is_terminal:
        print_exact(shown + "\n")
        return
    from rich.syntax import Syntax

    console.print(Syntax(printable(shown), "diff", theme=THEME, background_color="default"))


def _screen() -> "Console":
    from rich.console import Console  # takes as long to load as all other imports of this module

    return Console()


def _filled(document: FileText, regions: Sequence[Region], fills: Sequence[str], context: int | None) -> "Text":
    from rich.text import Text

    return Excerpt(document, regions, context).render([Text(printable(fill), style=FILL_STYLE) for fill in fills])
