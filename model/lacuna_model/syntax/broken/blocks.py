"""The layout of the lines around a gap: the block that its line opens, and whether a fill may open one."""

from functools import lru_cache

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.text.closers import GapLine
from lacuna_model.syntax.text.scan import FAR, UNKNOWN, Scan, column_of, scan, scan_brackets

CLOSERS = (b")", b"]", b"}")


def without_block(line: GapLine) -> bytes:
    """Return the text without a line and the block that it opens: the lines below it that are indented deeper.

    The closing bracket of that block goes, too.
    """
    below = line.below.lstrip(b"\r\n").splitlines(keepends=True)
    level = _column(line.head + line.tail + b"x")
    end = next((place for place, one in enumerate(below) if 0 <= _column(one) <= level), len(below))
    closes = end < len(below) and _column(below[end]) == level and below[end].strip()[:1] in CLOSERS
    return line.above + b"".join(below[end + closes :])


def is_laid_out(line: GapLine, fill: bytes, lexicon: Lexicon) -> bool:
    """Whether a fill fits the lines below: else it mends a bracket that another line has lost.

    If it leaves a bracket open, the line below is deeper, or the bracket is closed in the column of the fill's line; a
    fill of a whole line is no header of a block that is not indented. A bracket that it closes was not opened in a
    deeper line. From within a string it leads into no other one.
    """
    inside = scan(line.head, lexicon).inside
    if inside and inside in fill and scan(fill, lexicon, Scan(inside=inside)).inside:
        return False
    own, column = scan(fill + line.tail, lexicon, Scan(inside=inside)), column_of(line.head + fill + line.tail)
    is_whole = column > 0 and not line.head.strip()  # at the edge, the fill may lack its indentation
    if own.unmatched and is_whole and _innermost(line.above[-FAR:], lexicon) > column:
        return False
    opened = len(own.stack)
    if not opened or not line.below.strip():
        return True
    below = scan(line.below[:FAR], lexicon)
    inner = below.levels[0]
    if inner > column:
        return True
    ends = [closer.column for closer in below.unmatched[opened - 1 : opened]]
    return ends == [column] and (inner == UNKNOWN or bool(line.head.strip()))


@lru_cache(maxsize=4)
def _innermost(above: bytes, lexicon: Lexicon) -> int:
    """The column of the line that opens the innermost bracket which is open after a text; ``UNKNOWN`` without one."""
    stack = scan_brackets(above, lexicon).stack
    return stack[-1].column if stack else UNKNOWN


def _column(line: bytes) -> int:
    """The column of a line's first character; ``UNKNOWN``, which is below all columns, for a blank line."""
    return column_of(line) if line.strip() else UNKNOWN
