"""The blocks around a line, by indentation, and the text without them."""

from collections.abc import Iterator, Sequence

from lacuna_model.syntax.text.closers import Line
from lacuna_model.syntax.text.scan import UNKNOWN, column_of

MAX_BLOCKS = 8
CLOSERS = (b")", b"]", b"}")


def without_blocks(line: Line) -> Iterator[bytes]:
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


def _column(line: bytes) -> int:
    """The column of a line's first character; ``UNKNOWN``, which is below all columns, for a blank line."""
    return column_of(line) if line.strip() else UNKNOWN


def _last(lines: Sequence[bytes], level: int) -> int:
    """The last line that is indented no deeper than ``level``."""
    return next((place for place in reversed(range(len(lines))) if 0 <= _column(lines[place]) <= level), -1)


def _first(lines: Sequence[bytes], level: int) -> int:
    """The first line that is indented no deeper than ``level``; the number of lines where there is none."""
    return next((place for place, one in enumerate(lines) if 0 <= _column(one) <= level), len(lines))
