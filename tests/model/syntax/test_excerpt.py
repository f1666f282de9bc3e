import random

import pytest
from tests.model.large_files import NAMES, bodies, large

from lacuna_model.core.params import Region
from lacuna_model.languages.language import Language
from lacuna_model.languages.registry import LANGUAGES
from lacuna_model.syntax import parses
from lacuna_model.syntax.excerpt import FARTHEST, LARGE, NEAR, excerpt
from lacuna_model.syntax.faults import tree_faults

LINES = 8000


def known(name: str) -> Language:
    return next(one for one in LANGUAGES if one.name == name)


def cut(text: bytes, at: int, language: str) -> tuple[bytes, int]:
    """The excerpt for a gap, and where it begins."""
    part, (region,) = excerpt(text, [Region(at, at)], known(language))
    begin = at - region.start
    assert text[begin : begin + len(part)] == part
    assert region.end == region.start
    return part, begin


@pytest.mark.parametrize("language", NAMES)
def test_an_excerpt_has_no_error_that_the_text_does_not_have(language: str) -> None:
    text, parser = large(language, LINES).encode(), known(language).parser()
    faults = {(one.kind, text[one.start : one.end]) for one in tree_faults(parser.parse(text))}
    for at in random.Random(2).choices(range(len(text)), k=25):
        at = text.find(b"\n", at)
        part, begin = cut(text, at, language)
        found = {(one.kind, part[one.start : one.end]) for one in tree_faults(parser.parse(part))}
        assert found <= faults
        assert len(part) <= FARTHEST + LARGE
        assert begin == 0 or at - begin >= NEAR
        assert begin + len(part) == len(text) or begin + len(part) - at >= NEAR


@pytest.mark.parametrize("opened", [b"x = f(", b"x = [1, {", b"if (x) {"])
@pytest.mark.parametrize("language", NAMES)
def test_a_bracket_that_was_left_open_makes_the_excerpt_no_larger(language: str, opened: bytes) -> None:
    text = large(language, LINES).encode()
    for at in bodies(text.decode(), language):
        whole = cut(text, at, language)[0]
        broken = text[:at] + b"\n" + opened + text[at:]
        part, begin = cut(broken, at + 1 + len(opened), language)
        assert len(part) <= len(whole) + FARTHEST
        assert begin < at


def test_an_excerpt_neither_begins_nor_ends_in_a_string_or_a_comment() -> None:
    line = b"def named(x):\n    return x\n\n"
    quoted = b'"""\n' + line * 2000 + b'"""\n'
    text = line * 2000 + b"y = " + quoted + line * 2000
    at = len(line) * 2000 - 10
    assert parses(cut(text, at, "python")[0], known("python"))
    inside = text.index(quoted) + len(quoted) // 2
    part, begin = cut(text, inside, "python")
    assert begin < text.index(quoted)
    assert begin + len(part) >= text.index(quoted) + len(quoted)
    behind = text.index(quoted) + len(quoted) + 200
    assert parses(cut(text, behind, "python")[0], known("python"))


def test_small_texts_and_those_with_one_root_stay_whole() -> None:
    small = (b"x = 1\n\n" * 99999)[:LARGE]
    assert cut(small, 700, "python")[0] == small
    rows = b"[\n" + b'{"a": 1},\n\n' * 20_000 + b"{}]\n"
    assert excerpt(rows, [Region(5000, 5000)], known("json"))[0] == rows
    page = b"<?php\n" + b"$a = 1;\n\n" * 20_000
    assert excerpt(page, [Region(90_000, 90_000)], known("php"))[0] == page


def test_a_text_without_a_statement_at_the_left_edge_stays_whole() -> None:
    text = b"class A {\n" + b"  f() {\n    g();\n  }\n\n" * 8000 + b"}\n"
    assert cut(text, len(text) // 2, "typescript")[0] == text


def test_several_gaps_are_in_one_excerpt() -> None:
    text = large("python", LINES).encode()
    first, last = (text.index(b"\n", at) for at in (100_000, 102_500))
    part, (one, other) = excerpt(text, [Region(first, first + 4), Region(last, last)], known("python"))
    assert text[first - 50 : last + 50] == part[one.start - 50 : other.end + 50]
    assert len(part) < len(text) // 3
