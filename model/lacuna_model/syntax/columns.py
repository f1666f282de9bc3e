"""Blocks that are columns: the lines that must be written so that the suffix of a gap is in open blocks."""

import re
from collections.abc import Sequence
from typing import NamedTuple

REACH = 4000
CLAUSES = {b"elif": b"if x:", b"else": b"if x:", b"except": b"try:", b"finally": b"try:", b"case": b"match x:"}
# What heads the block that a clause continues.
_HANDLED = (b"try", b"except")
CONTINUED = {
    b"else": (b"if", b"elif", b"for", b"while", *_HANDLED),
    b"except": _HANDLED,
    b"finally": _HANDLED,
    b"case": (b"match",),
}


class StatementLine(NamedTuple):
    """The indentation of a statement's line, in characters, and the word that it begins with."""

    column: int
    word: bytes


def open_lines(text: bytes, unit: int) -> list[StatementLine]:
    """The lines whose blocks are open at the end of a text, outermost first; the last is the current line.

    An empty current line gets the column of the line before it, deeper by ``unit`` after a header.
    """
    lines = text[-REACH:].split(b"\n")
    found = [_line(lines[-1])]
    for raw in reversed(lines[:-1]):
        line = _line(raw)
        if not line.word:
            continue
        if not found[0].word:
            deeper = unit if raw.rstrip().endswith(b":") else 0
            found = [StatementLine(line.column + deeper, b"x")]
        if line.column < found[-1].column:
            found.append(line)
        if found[-1].column == 0:
            break
    return found[::-1]


def coming_lines(text: bytes) -> list[StatementLine]:
    """The lines after the first that are each indented less than all before, innermost first."""
    found: list[StatementLine] = []
    for raw in text[:REACH].split(b"\n")[1:]:
        line = _line(raw)
        if line.word and (not found or line.column < found[-1].column):
            found.append(line)
            if line.column == 0:
                break
    return found


def _line(raw: bytes) -> StatementLine:
    blank = re.match(rb"[ \t\f]*", raw)
    assert blank is not None
    word = re.match(rb"[^\W\d]\w*|[^\s#)\]}]", raw[blank.end() :])
    return StatementLine(blank.end(), word.group() if word else b"")


def header_for(text: bytes) -> bytes:
    """The header that the lines up to the next top-level statement need around them, judged by their words."""
    words = set(re.findall(rb"\b(?:continue|break|return|yield|await)\b", text))
    loops = words & {b"continue", b"break"}
    function = b"async def x():" if b"await" in words else b"def x():" if words - loops else b""
    return function or (b"while x:" if loops else b"if x:")


def lay_lines(
    opened: Sequence[StatementLine],
    coming: Sequence[StatementLine],
    *,
    header: bool,
    unit: int,
    floor: int,
    head: bytes,
) -> list[tuple[int, bytes]]:
    """The lines between open blocks and a statement that the coming lines can follow: their columns and headers.

    The last is the statement's own. ``header`` says that this statement is itself the header of the coming block.
    ``floor`` is the statement's least column, ``unit`` the width of an indentation, ``head`` the header of a new block.
    """
    column = max(_statement_column(opened, coming, header=header, unit=unit), floor)
    blocks = {opened[-1].column: b"", **{line.column: line.word for line in opened[:-1]}}  # the word that heads each
    lines: list[tuple[int, bytes]] = []

    def write(column: int, text: bytes, word: bytes) -> None:
        lines.append((column, text))
        for inner in [known for known in blocks if known > column]:
            del blocks[inner]
        blocks[column] = word

    for open_try in reversed([line for line in opened[:-1] if line.word == b"try"]):
        follower = next((line for line in coming if line.column <= open_try.column), None)
        if follower is None or follower.column < open_try.column or follower.word not in (b"except", b"finally"):
            write(open_try.column, b"finally: pass", b"")
    for target in [*reversed(coming[1:] if header else coming), StatementLine(column, b"")]:
        if target.column not in blocks and target.column > 0:
            parent = max((known for known in blocks if known < target.column), default=0)
            write(parent, head, head.split(b" ")[0])
            blocks[target.column] = b""
        if target.word in CLAUSES and blocks.get(target.column) not in CONTINUED.get(target.word, CONTINUED[b"else"]):
            clause = CLAUSES[target.word]
            write(target.column, clause, clause.rstrip(b":"))
            blocks[target.column + unit] = b""
    return [*lines, (column, b"")]


def _statement_column(
    opened: Sequence[StatementLine], coming: Sequence[StatementLine], *, header: bool, unit: int
) -> int:
    own = opened[-1].column
    if not coming:
        return own
    following = coming[0]
    columns = [line.column for line in opened]
    if header:
        columns += [line.column for line in coming[1:]]
        return max((column for column in columns if column < following.column), default=max(following.column - unit, 0))
    if following.word in CLAUSES:
        return min((column for column in columns if column > following.column), default=following.column + unit)
    return following.column
