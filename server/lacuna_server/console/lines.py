"""Lines of a document, as users name them: ``A:B``, counted from 1."""

import re

from lacuna_model.core.errors import RequestError
from lacuna_server import files
from lacuna_server.files import FileText

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
    whole = _with_ends(document.text)
    if last > len(whole):
        raise RequestError(f"line {last} is outside {document.path}, which has {len(whole)} lines")
    start = len("".join(whole[: first - 1]).encode())
    if first == 1 and document.text.startswith(files.BOM):
        start = len(files.BOM.encode())
    return start, len("".join(whole[:last]).encode())


def _with_ends(text: str) -> list[str]:
    """Returns the lines of a text with their ends."""
    ends = [end.end() for end in files.LINE_END.finditer(text)]
    starts = [0, *ends]
    return [text[a:b] for a, b in zip(starts, [*ends, len(text)], strict=True) if a < b]
