"""Neutral fills and lines: what may stand in a gap so that the rest of a text is valid."""

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax import parses
from lacuna_model.syntax.broken.neutral import is_laid_out, neutral_fills, neutral_lines, without_block
from lacuna_model.syntax.text.balance import GapLine, line_of


def without(text: bytes) -> bytes:
    place = text.index(b"|")
    return without_block(line_of(text.replace(b"|", b""), place, place))


@pytest.mark.parametrize(
    ("text", "fill", "fits"),
    [
        (b"f() {\n  |\n}\n", b"a;", True),
        (b"f() \n  |\n}\n", b"{", False),
        (b"f() |\n  a;\n}\n", b"{", True),
        (b"f() |\n}\n", b"{", True),
        (b"switch (a) |\ncase 1:\n  b();\n}\n", b"{", True),
        (b"namespace a |\nclass B {};\n}\n", b"{", True),
        (b"|\nclass B {};\n}\n", b"{", False),
        (b"|\nimport a;\nf() \n  b();\n}\n", b"x {", False),
        (b"  if (a|\n    b();\n  }\n", b") {", True),
        (b"f(|", b"{", True),
        (b"f(\n  g {\n    a\n  |\n}\n", b"})", True),
        (b"f {\n    g [\n  |\n}\n", b"]", False),
        (b'f("|\nb")\n', b'a", "', False),
        (b'f("|\n', b'a", b', True),
    ],
)
def test_a_fill_that_opens_a_block_fits_the_lines_below(text: bytes, fill: bytes, fits: bool) -> None:
    place = text.index(b"|")
    assert is_laid_out(line_of(text.replace(b"|", b""), place, place), fill, require("cpp").lexicon) is fits


MARK = "<|>"


def at(marked: str) -> GapLine:
    place = marked.encode().index(MARK.encode())
    return line_of(marked.replace(MARK, "").encode(), place, place)


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("python", "def f():\n    x = g(<|>\n"),
        ("go", "package a\n\nfunc f() {\n\tx := <|>\n"),
        ("toml", "[a]\nb = <|>\n"),
    ],
)
def test_a_neutral_fill_closes_what_the_line_opens(name: str, marked: str) -> None:
    line = at(marked)
    ends = b"}\n" if name == "go" else b""
    found = (line.above + own + line.below + ends for _, own in neutral_fills(line, require(name).lexicon))
    assert any(parses(text, require(name)) for text in found)


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("tsx", "const a = (\n  <|>\n    <b>{c}</b>\n  </section>\n);\n"),
        ("tsx", "const a = (\n  <section>\n    <b>{c}</b>\n  <|>\n);\n"),
        ("yaml", "a:\n  <|>\n    b: 1\n    c: 2\n"),
        ("java", "class A {\n  <|>\n    return 1;\n  }\n}\n"),
    ],
)
def test_a_line_opens_and_closes_what_its_surroundings_need(name: str, marked: str) -> None:
    line, language = at(marked), require(name)
    assert any(parses(line.above + one + line.below, language) for one in neutral_lines(line, language))
