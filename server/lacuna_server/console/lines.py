"""Lines of a document, as users name them: ``A:B``, counted from 1."""

import re

from lacuna_model.core.errors import RequestError
from lacuna_model.text.lines import line_starts
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
    data = document.text.encode()
    starts = [start for start in line_starts(data) if start < len(data)]
    if last > len(starts):
        raise RequestError(f"line {last} is outside {document.path}, which has {len(starts)} lines")
    ends = [*starts[1:], len(data)]
    return starts[first - 1] or len(files.BOM.encode()) * document.text.startswith(files.BOM), ends[last - 1]
