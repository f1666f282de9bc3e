"""Documents on disk: reads them exactly, finds their gaps, and writes fills without changing another byte."""

import errno
import os
import re
import stat
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lacuna_model.core import regions as region_groups
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, Region
from lacuna_model.hub import atomic
from lacuna_model.text.lines import LINE_END, first_of, line_starts, newline_of

MARKER = region_groups.MARKER.decode()
BOM = "\ufeff"
POSITION = re.compile(r"(\d{1,9}):(\d{1,9})")  # of thousands of digits Python reads no number
LINES = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")
WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it was read: its exact text (with BOM and line endings) and its status on disk at that time."""

    path: Path
    text: str
    status: os.stat_result


def read(path: Path) -> FileText:
    """Reads a UTF-8 text file. Raises RequestError for any other file and OSError where it cannot be read."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise RequestError(f"{path} is {'a directory' if stat.S_ISDIR(mode) else 'not a regular file'}")
    with path.open("rb") as stream:
        return FileText(path, decoded(path, stream.read()), os.fstat(stream.fileno()))


def read_stdin(path: Path = Path("-")) -> FileText:
    """Reads stdin to its end, as the text of ``path``. Raises RequestError where it is not UTF-8 text."""
    return FileText(path, decoded(path, sys.stdin.buffer.read()), os.fstat(sys.stdin.fileno()))


def decoded(path: Path, data: bytes) -> str:
    """Decodes the content of the file ``path``. Raises RequestError where it is not UTF-8 text."""
    if b"\0" in data:
        raise RequestError(f"{path} is a binary file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(
            f"{path} is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}"
        ) from error


def marked(document: FileText, max_tokens: int) -> list[Region]:
    """Returns the regions of all ``<<fill>>`` markers in order. Raises RequestError where there is none."""
    if not (found := region_groups.marked(document.text.encode(), max_tokens)):
        raise RequestError(f"{document.path} has no {MARKER} marker")
    return found


def offset_at(document: FileText, position: str) -> int:
    """Returns the byte offset of ``LINE:COL``: a 1-based line and a 0-based column in Unicode code points.

    A BOM does not count as part of line 1. Raises RequestError for another form and for a position outside the file.
    """
    match = POSITION.fullmatch(position)
    if match is None:
        raise RequestError(f"a position is LINE:COL, such as 12:4, not {position!r}")
    line, column = int(match[1]), int(match[2])
    text = document.text
    starts = line_starts(text)
    if not 1 <= line <= len(starts):
        raise RequestError(f"line {line} is outside {document.path}, which has {len(starts)} lines")
    start = starts[line - 1] or len(BOM) * text.startswith(BOM)
    length = len(first_of(text[start:]))
    if column > length:
        raise RequestError(f"column {column} is outside line {line} of {document.path}, which has {length} characters")
    return len(text[: start + column].encode())


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
    return starts[first - 1] or len(BOM.encode()) * document.text.startswith(BOM), ends[last - 1]


def gap_at(document: FileText, offset: int, max_tokens: int) -> Region:
    """Returns the region at a byte offset: the marker there, or a cursor."""
    at_marker = region_groups.at_marker(document.text.encode(), offset, max_tokens)
    behind = first_of(document.text.encode()[offset:].decode())
    return at_marker or region_groups.at_cursor(offset, behind, max_tokens)


def adapt_newlines(document: FileText, fill: str) -> str:
    """Returns the fill with the document's line ending, which is that of its first line."""
    ending = newline_of(document.text)
    return LINE_END.sub(ending, fill) if ending != "\n" else fill


def adapted(document: FileText, request: InfillRequest, fills: Sequence[str]) -> tuple[str, ...]:
    """Returns the fills with the document's line ending; the text of an edit has the line endings of its lines."""
    return tuple(fills) if request.rewrites else tuple(adapt_newlines(document, fill) for fill in fills)


def unwritable(path: Path) -> str:
    """Returns why a file must not be replaced: it is read-only, or has other names, which would keep the old text."""
    try:
        status = path.stat()
    except OSError:
        return ""
    if not status.st_mode & WRITE_BITS or not os.access(path, os.W_OK):
        return "is read-only"
    return f"has {status.st_nlink} hard links, and the others would keep the old text" if status.st_nlink > 1 else ""


def check_writable(paths: Iterable[Path]) -> None:
    """Raises RequestError for the first file that must not be replaced, before any work is done for it."""
    for path in paths:
        if reason := unwritable(path):
            raise RequestError(f"{path} {reason}; nothing was written")


def write(document: FileText, text: str) -> None:
    """Replaces the content of the document's file by ``text`` in one atomic step.

    Keeps the mode, the owner where allowed, and a symlink. Raises RequestError where the file has changed since it was
    read, is read-only, has other hard links or cannot be written.
    """
    if reason := unwritable(document.path):
        raise RequestError(f"{document.path} {reason}; it was not written")
    try:
        target = document.path.resolve(strict=True)
        with atomic.replacing(target, private=True) as stream:
            stream.write(text.encode())
            keep_owner_and_mode(stream.fileno(), document.status)
            if _identity(target.stat()) != _identity(document.status):
                raise RequestError(f"{document.path} has changed since it was read; it was not written")
    except OSError as error:
        raise RequestError(f"cannot write {document.path}: {error.strerror or error}") from error


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def keep_owner_and_mode(descriptor: int, status: os.stat_result) -> None:
    """Gives an open file the owner and group (where allowed) and the mode that ``status`` has."""
    if os.name != "posix":
        return
    # Only root may change the owner, and other users only to groups of their own. Where that fails the file belongs to
    # the user who writes it, as with any editor.
    for owner in (status.st_uid, -1):
        try:
            os.fchown(descriptor, owner, status.st_gid)
            break
        except OSError as error:
            if error.errno != errno.EPERM:
                raise
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
