"""What is told of fills in a file of which only a part is parsed."""

import pytest

from lacuna_model.syntax.document import Document

from .drive import require

GAP = b"<>"
PYTHON = (
    b"def f(a):\n    <>\n    return a\n\n\n"
    + b"def g():\n    pass\n\n\n" * 400
    + b"def h(a):\n    if a:\n        <>\n    return a\n"
)
C = (
    b"int f(int a) {\n  <>\n  return a;\n}\n\n"
    + b"int g();\n\n" * 400
    + b"int h(int a) {\n  if (a) {\n    <>\n  }\n}\n"
)


def cut(name: str, text: bytes) -> Document:
    """A document with empty gaps where the text has marks."""
    parts = text.split(GAP)
    places = [len(b"".join(parts[: number + 1])) for number in range(len(parts) - 1)]
    return Document(b"".join(parts), [(place, place) for place in places], require(name))


@pytest.mark.parametrize(
    ("name", "text", "fills"),
    [
        ("python", PYTHON, (b"a = [\n        1]", b"a = 2\n        b = (3,\n    4)")),
        ("c", C, (b"a = 1;\n  while (a) {\n  }", b"a--;")),
    ],
)
def test_what_is_sound_is_told_without_a_parse_of_all(
    name: str, text: bytes, fills: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    document = cut(name, text)
    assert len(document.windows) == 2
    with monkeypatch.context() as patch:
        patch.delattr(Document, "check_fresh")
        assert document.check_soon(fills).valid
    assert document.check_fresh(fills).valid


@pytest.mark.parametrize(
    ("name", "text", "fills"),
    [
        ("python", PYTHON, (b"a = [", b"a = 2")),
        ("python", PYTHON, (b"a = 1\n      b = 2", b"a = 2")),
        ("python", PYTHON, (b"a = 1", b"break")),
        ("c", C, (b"while (a) {", b"a--;")),
        ("c", C, (b"a = 1;\n}\n{", b"a--;")),
    ],
)
def test_what_is_not_is_what_a_fresh_parse_finds(name: str, text: bytes, fills: tuple[bytes, ...]) -> None:
    document = cut(name, text)
    assert document.check_soon(fills) == document.check_fresh(fills)
    assert not document.check_soon(fills).valid


def test_where_the_rest_is_broken_all_is_parsed() -> None:
    document = cut("c", C + b"int x( {\n")
    assert document.check_soon((b"a = 1;", b"a--;")) == document.check_fresh((b"a = 1;", b"a--;"))
