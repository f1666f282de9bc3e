import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_server.wire.documents import PIECE, Documents, applied
from lacuna_server.wire.protocol import Change, Edit, Open, ServiceError

URI = "file:///a.py"


def documents(text: str = "größe = 1\n", version: int = 1) -> Documents:
    opened = Documents(max_documents=2, max_bytes=40)
    opened.open(Open(URI, text, version, "/a.py", "python"))
    return opened


def refused(code: str, call: object, *arguments: object) -> str:
    assert callable(call)
    with pytest.raises(ServiceError) as caught:
        call(*arguments)
    assert caught.value.code == code
    return str(caught.value)


def test_the_limits_for_documents_are_enforced() -> None:
    opened = documents()
    refused("too_large", opened.open, Open("file:///b.py", "ä" * 21))
    refused("too_large", opened.change, Change(URI, 2, (Edit(0, 0, "x" * 40),)))
    opened.open(Open("file:///b.py", ""))
    opened.open(Open("file:///c.py", ""))
    refused("too_large", opened.open, Open("file:///d.py", ""))
    opened.open(Open("file:///c.py", "again"))
    opened.close("file:///b.py")
    opened.open(Open("file:///d.py", ""))
    assert len(opened) == 2


def test_edits_across_a_long_text_are_applied_in_order() -> None:
    """Far apart, near, across many pieces, and at their borders; each moves a piece of the text and not all of it."""
    text = bytearray("aé" * PIECE, "utf-8")
    edits = [Edit(at, at, "x") for at in range(0, 600, 3)]
    edits += [Edit(at, at + 3, "ü") for at in range(PIECE - 1, 2 * PIECE, PIECE // 8) if at % 3 == 0]
    edits += [Edit(0, 0, "0") if number % 2 else Edit(3 * PIECE, 3 * PIECE + 1, "") for number in range(999)]
    edits += [Edit(1, 3 * PIECE + 1, "y" * 3 * PIECE), Edit(PIECE, PIECE + 1, ""), Edit(2, 2 * PIECE, "")]
    plain = bytes(text)
    done = []
    for edit in edits:
        if not any(at < len(text) and text[at] & 0xC0 == 0x80 for at in (edit.start, edit.end)):
            text[edit.start : edit.end] = edit.text.encode()
            done.append(edit)
    assert len(done) > 500
    assert applied(plain, done) == text
    opened = Documents(max_documents=1, max_bytes=10 * PIECE)
    opened.open(Open(URI, plain.decode(), 1))
    opened.change(opened.folded(Change(URI, 2, tuple(done))))
    assert opened.get(URI, 2).text == text


EDITS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.text(max_size=3)), max_size=4)


@given(st.text(max_size=9), EDITS)
def test_any_edits_have_the_same_effect_as_on_a_string(text: str, edits: list[tuple[int, int, str]]) -> None:
    opened = documents(text)
    messages = []
    for at, size, new in edits:
        start, end = min(at, len(text)), min(at + size, len(text))
        messages.append(Edit(len(text[:start].encode()), len(text[:end].encode()), new))
        text = text[:start] + new + text[end:]
    if len(text.encode()) <= 40:
        opened.change(Change(URI, 2, tuple(messages)))
        assert opened.get(URI, 2).text.decode() == text
