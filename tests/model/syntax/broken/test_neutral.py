"""Neutral fills and lines: what may stand in a gap so that the rest of a text is valid."""

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax import parses
from lacuna_model.syntax.broken.neutral import neutral_fills, neutral_lines
from lacuna_model.syntax.text.balance import GapLine, line_of

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
