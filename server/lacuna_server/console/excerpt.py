"""Renders the lines of a document around its gaps, highlighted for the terminal."""

from collections.abc import Sequence

from rich.style import Style
from rich.syntax import ANSI_LIGHT, ANSISyntaxTheme, Syntax
from rich.text import Text

from lacuna_model.core.params import Region
from lacuna_server.files import BOM, FileText

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
