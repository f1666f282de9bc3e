"""The blocks around a line, by indentation: the text without them, and whether a fill may open one."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.text.closers import GapLine
from lacuna_model.syntax.text.scan import FAR, UNKNOWN, Scan, column_of, scan, scan_brackets

MAX_BLOCKS = 8
CLOSERS = (b")", b"]", b"}")


def without_blocks(line: GapLine) -> Iterator[bytes]:
    """Yield the text without a line and the block that it opens, then without each block that it lies in.

    A block is the lines that are indented deeper than the nearest line above that is indented less. The lines around it
    stay, but for the closing bracket of the block that the line itself opens.
    """
    above, below = line.above.splitlines(keepends=True), line.below.lstrip(b"\r\n").splitlines(keepends=True)
    level = _column(line.head + line.tail + b"x")
    end = _first(below, level)
    closes = end < len(below) and _column(below[end]) == level and below[end].strip()[:1] in CLOSERS
    yield b"".join([*above, *below[end + closes :]])
    for _ in range(MAX_BLOCKS):
        level = next((column for column in map(_column, reversed(above)) if 0 <= column < level), -1)
        if level < 0:
            return
        above = above[: _last(above, level) + 1]
        below = below[_first(below, level) :]
        yield b"".join([*above, *below])


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


def _last(lines: Sequence[bytes], level: int) -> int:
    """The last line that is indented no deeper than ``level``."""
    return next((place for place in reversed(range(len(lines))) if 0 <= _column(lines[place]) <= level), -1)


def _first(lines: Sequence[bytes], level: int) -> int:
    """The first line that is indented no deeper than ``level``; the number of lines where there is none."""
    return next((place for place, one in enumerate(lines) if 0 <= _column(one) <= level), len(lines))
