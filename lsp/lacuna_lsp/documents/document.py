"""Open documents as lines of UTF-8, and a client's changes to them as byte edits."""

from bisect import bisect_right
from collections.abc import Iterable
from copy import copy
from itertools import accumulate
from pathlib import PurePath

from lsprotocol import types
from pygls.uris import to_fs_path

from lacuna_lsp.documents.positions import Encoding, byte_column, client_column, cuts_character, to_utf8
from lacuna_model.core.errors import RequestError
from lacuna_server.wire.protocol import Edit

_LONE_HALF = "\ufffd"


class Document:
    """A text document of the client.

    ``version`` is the client's; ``saved`` is the text as it was opened or saved last. pygls has a document of its own,
    which ends lines at characters that end no line in LSP and copies the whole text at every keystroke.
    """

    def __init__(self, uri: str, text: str, version: int, language: str, encoding: Encoding) -> None:
        self.uri = uri
        self.version = version
        self.language = to_utf8(language).decode()
        self.path = to_fs_path(uri) or PurePath(uri).name
        self._encoding = encoding
        self._lines = _split(to_utf8(text))
        self._starts: list[int] = []
        self.saved = self.text

    def snapshot(self) -> "Document":
        """The document as it is now, for another thread to look at."""
        twin = copy(self)
        twin._lines, twin._starts = list(self._lines), []
        return twin

    @property
    def text(self) -> bytes:
        """The whole text."""
        return b"".join(self._lines)

    @property
    def size(self) -> int:
        """The length of the text in bytes."""
        return sum(map(len, self._lines))

    @property
    def line_count(self) -> int:
        """The number of lines; the last one may be empty."""
        return len(self._lines)

    def line(self, index: int) -> bytes:
        """A line without its ending; empty behind the last one."""
        return self._lines[index].rstrip(b"\r\n") if 0 <= index < len(self._lines) else b""

    @property
    def newline(self) -> str:
        """The line ending of the document: that of its first line."""
        first = self._lines[0]
        return (first[len(first.rstrip(b"\r\n")) :] or b"\n").decode()

    def before(self, offset: int, limit: int) -> bytes:
        """At most about ``limit`` bytes of text in front of an offset, from a line's beginning where it is cut."""
        row = bisect_right(self._line_starts(), offset) - 1
        first, size = row, offset - self._starts[row]
        while first > 0 and size < limit:
            first -= 1
            size += len(self._lines[first])
        return b"".join(self._lines[first : row + 1])[:size][-4 * limit :]

    def after(self, offset: int, limit: int) -> bytes:
        """At most about ``limit`` bytes of text behind an offset, to a line's end where it is cut."""
        row = bisect_right(self._line_starts(), offset) - 1
        last, size = row, 0
        while last < len(self._lines) and size < limit:
            size += len(self._lines[last])
            last += 1
        return b"".join(self._lines[row:last])[offset - self._starts[row] :][: 4 * limit]

    def offset(self, position: types.Position) -> int:
        """The byte offset of a client's position; one outside the document is its nearest place, as LSP has it."""
        if position.line >= len(self._lines):
            return self.size
        column = byte_column(self.line(position.line), position.character, self._encoding)
        return self._line_starts()[position.line] + column

    def position(self, offset: int) -> types.Position:
        """A byte offset as the client counts."""
        row = bisect_right(self._line_starts(), offset) - 1
        return types.Position(row, client_column(self.line(row), offset - self._starts[row], self._encoding))

    def span(self, start: int, end: int) -> types.Range:
        """Two byte offsets as a client's range."""
        return types.Range(self.position(start), self.position(end))

    def bounds(self, span: types.Range) -> tuple[int, int]:
        """A client's range as byte offsets; raises RequestError for one that lies outside the document or runs back."""
        if span.end.line >= len(self._lines):
            raise RequestError(f"line {span.end.line + 1} is outside {self.path}, which has {len(self._lines)} lines")
        start, end = self.offset(span.start), self.offset(span.end)
        if start > end:
            raise RequestError(f"the range ends in line {span.end.line + 1}, before it begins")
        return start, end

    def apply(self, changes: Iterable[types.TextDocumentContentChangeEvent], version: int) -> tuple[Edit, ...]:
        """Make a client's changes and return them as byte edits, each to what the one before left."""
        edits = tuple(self._apply(change) for change in changes)
        self.version = version
        return edits

    def _apply(self, change: types.TextDocumentContentChangeEvent) -> Edit:
        if isinstance(change, types.TextDocumentContentChangeWholeDocument):
            edit = Edit(0, self.size, to_utf8(change.text).decode())
            self._lines, self._starts = _split(edit.text.encode()), []
            return edit
        start, end, text = self.offset(change.range.start), self.offset(change.range.end), to_utf8(change.text)
        # A client that counts in halves of characters may cut one: what it leaves of it is a lone surrogate there.
        if self._cuts(change.range.start):
            text = _LONE_HALF.encode() + text
        if self._cuts(change.range.end):
            text += _LONE_HALF.encode()
            end += _character_length(self._lines[change.range.end.line][end - self._starts[change.range.end.line] :])
        self._splice(start, max(start, end), text)
        return Edit(start, max(start, end), text.decode())

    def _splice(self, start: int, end: int, text: bytes) -> None:
        starts = self._line_starts()
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end) - 1
        # "\r" and "\n" that come to stand side by side are one line ending.
        if first > 0 and start == starts[first] and self._lines[first - 1].endswith(b"\r"):
            first -= 1
        head = b"".join(self._lines[first : last + 1])
        merged = head[: start - starts[first]] + text + head[end - starts[first] :]
        lines = _split(merged)
        self._lines[first : last + 1] = lines if last + 1 == len(self._lines) else lines[:-1]
        self._starts = []

    def _cuts(self, position: types.Position) -> bool:
        return position.line < len(self._lines) and cuts_character(
            self.line(position.line), position.character, self._encoding
        )

    def _line_starts(self) -> list[int]:
        if not self._starts:
            self._starts = [0, *accumulate(map(len, self._lines[:-1]))]
        return self._starts


def _split(data: bytes) -> list[bytes]:
    """Lines with their endings; the last one has none, so that every text has at least one line."""
    lines = data.splitlines(keepends=True)
    if not lines or lines[-1].endswith((b"\n", b"\r")):
        lines.append(b"")
    return lines


def _character_length(data: bytes) -> int:
    return len(data.decode("utf-8", "ignore")[:1].encode())
