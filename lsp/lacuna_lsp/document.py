"""An open document with its versions, and positions in the client's encoding."""

from bisect import bisect_right
from collections.abc import Sequence
from copy import copy
from itertools import accumulate
from pathlib import PurePath
from typing import Literal

from lsprotocol import types
from pygls.uris import to_fs_path

from lacuna_model.core.errors import RequestError
from lacuna_model.text.diff import common_ends, num_common
from lacuna_model.text.lines import newline_of, well_formed, within_character
from lacuna_server.wire.protocol import Edit

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_WIDTHS: dict[Encoding, tuple[str, int]] = {"utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def byte_column(line: bytes, character: int, encoding: Encoding) -> int:
    """Returns the byte column of the ``character``-th code unit of a line, which is given without its ending.

    A column past the end becomes the end, as LSP demands; one inside a character becomes the start of that character.
    """
    if encoding == "utf-8" or line.isascii():
        column = min(character, len(line))
        while within_character(line, column):
            column -= 1
        return column
    codec, width = _WIDTHS[encoding]
    return len(line.decode().encode(codec)[: character * width].decode(codec, "ignore").encode())


def client_column(line: bytes, column: int, encoding: Encoding) -> int:
    """Returns the number of code units before a byte column; one inside a character becomes its start."""
    if encoding == "utf-8" or line.isascii():
        return byte_column(line, column, "utf-8")
    codec, width = _WIDTHS[encoding]
    return len(line[:column].decode("utf-8", "ignore").encode(codec)) // width


def to_utf8(text: str) -> bytes:
    """Encodes a client's text as UTF-8; lone surrogates become U+FFFD, which is as long in every encoding."""
    return well_formed(text).encode()


_LONE_HALF = "\ufffd"
# More changes together are one edit.
MAX_EDITS = 64
_Place = tuple[int, int]


class ClientDocument:
    """A text document of the client.

    ``version`` is the client's; ``saved`` is the text at the last opening or saving. pygls's own document is not used:
    it ends lines at characters that end no line in LSP, and copies the whole text at every keystroke.
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

    def snapshot(self) -> "ClientDocument":
        """Returns a copy for another thread to read."""
        twin = copy(self)
        twin._lines = list(self._lines)
        return twin

    @property
    def languages(self) -> frozenset[str]:
        """The language id and its parts: some editors name several languages, such as ``typescript.tsx``."""
        return frozenset([self.language, *self.language.split(".")])

    @property
    def text(self) -> bytes:
        """The whole text."""
        return b"".join(self._lines)

    @property
    def size(self) -> int:
        """The length of the text in bytes."""
        return self._line_starts()[-1] + len(self._lines[-1])

    def between(self, start: int, end: int) -> bytes:
        """Returns the text between two byte offsets."""
        first, last = self._row(start), self._row(end)
        return b"".join(self._lines[first : last + 1])[start - self._starts[first] :][: end - start]

    def line(self, index: int) -> bytes:
        """Returns a line without its ending, or empty bytes for an index outside the document."""
        return self._lines[index].rstrip(b"\r\n") if 0 <= index < len(self._lines) else b""

    def rows(self, first: int, end: int) -> str:
        """Returns whole lines with their endings; ``end`` is not included."""
        return b"".join(self._lines[first:end]).decode()

    @property
    def newline(self) -> str:
        """The document's line ending: that of its first line."""
        return newline_of(self._lines[0].decode())

    def head(self, offset: int) -> str:
        """Returns the text before an offset on its line."""
        row = self._row(offset)
        return self._lines[row][: offset - self._starts[row]].decode()

    def before(self, offset: int, limit: int) -> bytes:
        """Returns about ``limit`` bytes before an offset; a cut text starts at the start of a line."""
        first = self._row(max(offset - limit, 0))
        return self.between(self._starts[first], offset)[-4 * limit :]

    def after(self, offset: int, limit: int) -> bytes:
        """Returns about ``limit`` bytes from an offset on; a cut text ends at the end of a line."""
        last = self._row(offset + limit)
        return self.between(offset, self._starts[last] + len(self._lines[last]))[: 4 * limit]

    def offset(self, position: types.Position) -> int:
        """Returns the byte offset of a client's position; one outside the document is moved to the nearest place."""
        row, column = self._place(position)
        return self._line_starts()[row] + column

    def inside(self, position: types.Position) -> int:
        """Returns the byte offset of a client's position; raises RequestError for a line outside the document."""
        return self.bounds(types.Range(position, position))[0]

    def position(self, offset: int) -> types.Position:
        """Returns the client's position of a byte offset."""
        row = self._row(offset)
        return types.Position(row, client_column(self.line(row), offset - self._starts[row], self._encoding))

    def span(self, start: int, end: int) -> types.Range:
        """Returns the client's range between two byte offsets."""
        return types.Range(self.position(start), self.position(end))

    def bounds(self, span: types.Range) -> tuple[int, int]:
        """Returns the byte offsets of a client's range.

        Raises RequestError if the range lies outside the document or ends before it begins.
        """
        if span.end.line >= len(self._lines):
            raise RequestError(f"line {span.end.line + 1} is outside {self.path}, which has {len(self._lines)} lines")
        start, end = self.offset(span.start), self.offset(span.end)
        if start > end:
            raise RequestError(f"the range ends in line {span.end.line + 1}, before it begins")
        return start, end

    def apply(self, changes: Sequence[types.TextDocumentContentChangeEvent], version: int | None) -> tuple[Edit, ...]:
        """Applies a client's changes and returns byte edits that do the same, each to the result of the previous one.

        An edit leaves out what stays at its ends. Many changes are one edit, of all between the first and the last.
        ``version`` is that of the result; None where the client counts no versions.
        """
        self.version = self.version + 1 if version is None else version
        if len(changes) > MAX_EDITS:
            before = self.text
            for change in changes:
                self._splice(*self._parts(change))
            edit = narrowed(Edit(0, len(before), self.text.decode()), before)
            return (edit,) if edit.start < edit.end or edit.text else ()
        edits = []
        for change in changes:
            first, last, text = self._parts(change)
            starts = self._line_starts()
            edit = Edit(starts[first[0]] + first[1], starts[last[0]] + last[1], text.decode())
            edits.append(narrowed(edit, self.between(edit.start, edit.end)))
            self._splice(first, last, text)
        return tuple(edits)

    def _parts(self, change: types.TextDocumentContentChangeEvent) -> tuple[_Place, _Place, bytes]:
        """Returns what a change replaces, and with what."""
        if isinstance(change, types.TextDocumentContentChangeWholeDocument):
            return (0, 0), self._end, to_utf8(change.text)
        first, last, text = self._place(change.range.start), self._place(change.range.end), to_utf8(change.text)
        # A client that counts UTF-16 units may cut a character, and then has a lone surrogate at that place.
        if self._cuts(change.range.start):
            text = _LONE_HALF.encode() + text
        if self._cuts(change.range.end):
            text += _LONE_HALF.encode()
            row, column = last
            last = row, column + _character_length(self._lines[row][column:])
        return first, max(first, last), text

    @property
    def _end(self) -> _Place:
        return len(self._lines) - 1, len(self._lines[-1])

    def _place(self, position: types.Position) -> _Place:
        """Returns the row and byte column of a position; one outside the document is moved to the nearest place."""
        if position.line >= len(self._lines):
            return self._end
        return position.line, byte_column(self.line(position.line), position.character, self._encoding)

    def _splice(self, start: _Place, end: _Place, text: bytes) -> None:
        (first, column), (last, stop) = start, end
        merged = self._lines[first][:column] + text + self._lines[last][stop:]
        # An edit can bring "\r" and "\n" together: they are then one line ending.
        if first > 0 and column == 0 and self._lines[first - 1].endswith(b"\r"):
            first -= 1
            merged = self._lines[first] + merged
        lines = _split(merged)
        self._lines[first : last + 1] = lines if last + 1 == len(self._lines) else lines[:-1]
        self._starts = []

    def _cuts(self, position: types.Position) -> bool:
        """Whether a position is inside a character, for example between the halves of a surrogate pair."""
        line = self.line(position.line)
        column = byte_column(line, position.character, self._encoding)
        return column < len(line) and client_column(line, column, self._encoding) != position.character

    def _row(self, offset: int) -> int:
        return bisect_right(self._line_starts(), offset) - 1

    def _line_starts(self) -> list[int]:
        if not self._starts:
            self._starts = [0, *accumulate(map(len, self._lines[:-1]))]
        return self._starts


def _split(data: bytes) -> list[bytes]:
    """Splits a text into lines with their endings; the last has none, so there is always at least one line."""
    lines = data.splitlines(keepends=True)
    if not lines or lines[-1].endswith((b"\n", b"\r")):
        lines.append(b"")
    return lines


def without_common_start(edit: Edit, old: bytes) -> Edit:
    """Returns an edit that does the same without replacing what the ``old`` text and the new one begin with."""
    size = num_common(old.decode(), edit.text)
    return Edit(edit.start + len(edit.text[:size].encode()), edit.end, edit.text[size:])


def narrowed(edit: Edit, old: bytes) -> Edit:
    """Returns an edit that does the same without replacing what the ``old`` text and the new one share at its ends."""
    first, last = common_ends(old.decode(), edit.text)
    lead, text, tail = edit.text[:first], edit.text[first : len(edit.text) - last], edit.text[len(edit.text) - last :]
    return Edit(edit.start + len(lead.encode()), edit.end - len(tail.encode()), text)


def _character_length(data: bytes) -> int:
    return len(data.decode("utf-8", "ignore")[:1].encode())
