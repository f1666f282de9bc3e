import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types
from tests.lsp.editor import CODECS

from lacuna_lsp.document import MAX_EDITS, ClientDocument, Encoding, byte_column, client_column
from lacuna_model.core.errors import RequestError

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
lines = st.text(st.sampled_from("ab\t ä€\ufeff😀👩‍👧\u2028\x0c\u0301\U0010ffff"), max_size=12)


def units(text: str, encoding: Encoding) -> int:
    """The number of code units, counted naively for every character."""
    width = {"utf-8": lambda c: len(c.encode()), "utf-16": lambda c: 1 + (ord(c) > 0xFFFF), "utf-32": lambda c: 1}
    return sum(width[encoding](character) for character in text)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(line=lines)
def test_every_column_between_characters_is_converted_there_and_back(encoding: Encoding, line: str) -> None:
    for index in range(len(line) + 1):
        character, column = units(line[:index], encoding), len(line[:index].encode())
        assert byte_column(line.encode(), character, encoding) == column
        assert client_column(line.encode(), column, encoding) == character


AFTER_LINE_END = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")
PIECES = ("a", "bc", "\n", "\r\n", "\r", "\t", "ä", "😀", "\u2028", "\x0c", "\ufeff", "")
texts = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)


def document(text: str, encoding: Encoding = "utf-16", uri: str = "file:///w/code.py") -> ClientDocument:
    return ClientDocument(uri, text, 1, "python", encoding)


def change(start: tuple[int, int], end: tuple[int, int], text: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(types.Range(types.Position(*start), types.Position(*end)), text)


class Naive:
    """A client's copy of the text, stored as code units, so that an edit can split a surrogate pair."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self.codec, self.width = CODECS[encoding]
        self.units = text.encode(self.codec)

    @property
    def text(self) -> str:
        return self.units.decode(self.codec, "surrogatepass")

    def positions(self) -> list[tuple[int, int]]:
        """Every possible cursor position. In UTF-8 and UTF-32, these are only the positions between characters."""
        found = []
        for row, line in enumerate(self.lines()):
            body = line.rstrip("\r\n")
            ends = [len(body[:index].encode(self.codec, "surrogatepass")) for index in range(len(body) + 1)]
            columns = range(ends[-1] // 2 + 1) if self.width == 2 else sorted({end // self.width for end in ends})
            found += [(row, column) for column in columns]
        return found

    def replace(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        first, last = self._offset(start), self._offset(end)
        self.units = self.units[:first] + text.encode(self.codec) + self.units[last:]

    def lines(self) -> list[str]:
        return AFTER_LINE_END.split(self.text)

    def _offset(self, position: tuple[int, int]) -> int:
        before = "".join(self.lines()[: position[0]])
        return len(before.encode(self.codec, "surrogatepass")) + position[1] * self.width


def apply_bytes(text: bytes, edits: Sequence[object]) -> bytes:
    for edit in edits:
        text = text[: edit.start] + edit.text.encode() + text[edit.end :]  # type: ignore[attr-defined]
    return text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@given(data=st.data())
def test_changes_give_the_clients_text_and_equivalent_byte_edits(encoding: Encoding, data: st.DataObject) -> None:
    naive, ours = Naive(start := data.draw(texts), encoding), document(start, encoding)
    for version in range(2, 5):
        places = naive.positions()
        first, last = sorted((data.draw(st.sampled_from(places)), data.draw(st.sampled_from(places))))
        inserted, before = data.draw(texts), ours.text
        naive.replace(first, last, inserted)
        edits = ours.apply([change(first, last, inserted)], version)
        assert apply_bytes(before, edits) == ours.text
        # Half a surrogate pair becomes U+FFFD. It has the same length in UTF-16, so that later positions stay correct.
        assert ours.text.decode() == naive.text or "\ufffd" in ours.text.decode()
        assert len(ours.text.decode().encode("utf-16-le")) == len(naive.text.encode("utf-16-le", "surrogatepass"))
        assert ours.position(ours.size).line + 1 == len(naive.lines())
        assert ours.version == version


@given(start=texts, data=st.data())
def test_many_changes_are_one_edit_from_the_first_to_the_last(start: str, data: st.DataObject) -> None:
    one_by_one, together = document(start), document(start)
    made = []
    for version in range(2, 2 * MAX_EDITS):
        row = data.draw(st.integers(0, one_by_one.position(one_by_one.size).line + 1)) if version < 10 else version % 3
        made.append(change((row, version % 2), (row + version // 5 % 2, version % 3), "ab\n\rä"[: version % 5]))
        one_by_one.apply(made[-1:], version)
    edits = together.apply(made, 2)
    assert len(edits) <= 1
    assert together.text == one_by_one.text == apply_bytes(start.encode(), edits)


def test_replacing_all_of_a_large_file_ends() -> None:
    """Each change by itself, as edits of the whole text, moves a hundred gigabytes."""
    rows = 100_000
    ours = document("x = old(1)\n" * rows)
    (edit,) = ours.apply([change((row, 4), (row, 7), "new") for row in range(1, rows - 1)], 2)
    assert ours.text.decode() == "x = old(1)\n" + "x = new(1)\n" * (rows - 2) + "x = old(1)\n"
    assert (edit.start, edit.end) == (11 + 4, 11 * (rows - 1) - 4)
    assert edit.text == ("x = new(1)\n" * (rows - 2))[4:-4]


@pytest.mark.parametrize(
    ("old", "new", "edit"),
    [
        ("x = 1\n", "x = 12\n", (5, 5, "2")),
        ("x = 1\n", "x = 1\n", (6, 6, "")),
        ("é", "è", (0, 2, "è")),  # they share their first byte
        ("Ą", "Ȅ", (0, 2, "Ȅ")),  # they share their last byte
        ("aa", "aaa", (2, 2, "a")),
    ],
)
def test_an_edit_replaces_no_more_than_what_differs(old: str, new: str, edit: tuple[int, int, str]) -> None:
    """So that a client that sends whole texts is followed like others."""
    (made,) = document(old).apply([types.TextDocumentContentChangeWholeDocument(new)], 2)
    assert (made.start, made.end, made.text) == edit


def test_the_text_around_an_offset_is_cut_at_line_boundaries() -> None:
    text = "".join(f"line {n}\n" for n in range(100))
    ours = document(text)
    offset = text.index("line 50") + 4
    before, after = ours.before(offset, 30).decode(), ours.after(offset, 30).decode()
    assert before.endswith("line 49\nline")
    assert before.startswith("line ")
    assert after.startswith(" 50\nline 51\n")
    assert len(before) < 60 > len(after)
    assert ours.before(offset, 10**6) + ours.after(offset, 10**6) == text.encode()


def test_a_range_outside_the_document_is_refused() -> None:
    ours = document("one\ntwo")
    span = types.Range(types.Position(0, 0), types.Position(9, 0))
    with pytest.raises(RequestError, match=r"line 10 is outside /w/code.py, which has 2 lines"):
        ours.bounds(span)
    with pytest.raises(RequestError, match="before it begins"):
        ours.bounds(types.Range(types.Position(1, 2), types.Position(0, 1)))
