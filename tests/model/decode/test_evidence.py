"""The numbers by which the gate judges: which beginnings there are, and what each has."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.core.context import Gap
from lacuna_model.core.params import Region
from lacuna_model.decode.evidence import MOST, Beginning, GapSurroundings, JudgedFill, JudgedToken, beginnings, numbers
from lacuna_model.decode.fill import Fill

from .test_gate import ByteTokens

TEXT = """import ledger

def area(width, height):
    area = \n
def volume(width, height, depth):
    return width * height * depth
"""
AT = TEXT.index("area = ") + len("area = ")
FILL = "width * heigth\nreturn area"


def around(text: str = TEXT, at: int = AT) -> GapSurroundings:
    """What stands around a cursor."""
    return GapSurroundings(text.encode(), Region(at, at))


def written(fill: str, *log_probs: float) -> JudgedFill:
    """A fill of which each word is a token; the last log-probability is that of its end."""
    words = fill.replace("\n", " \n ").split(" ")
    tokens = [JudgedToken(f"{word} ".encode(), one, 2.0) for word, one in zip(words, log_probs, strict=False)]
    return JudgedFill(tokens, JudgedToken(b"", log_probs[-1], 1.0))


def test_the_beginnings_of_a_fill_are_the_words_of_its_first_line_and_its_lines() -> None:
    assert [(FILL[: one.end], one.line, one.is_whole) for one in beginnings(FILL)] == [
        ("width", 0, False),
        ("width *", 0, False),
        ("width * heigth", 0, True),
        (FILL, 1, True),
    ]


@given(st.text("aé(.\n ", max_size=30))
def test_beginnings_grow_and_never_cut_a_character(fill: str) -> None:
    found = list(beginnings(fill))
    ends = [one.end for one in found]
    assert ends == sorted(ends)
    assert len({(one.end, one.is_whole) for one in found}) == len(found)
    assert sum(one.is_whole for one in found) == max(fill.removesuffix("\n").count("\n") + 1, 1)
    for one in found:
        fill.encode()[: one.end].decode()


def test_a_beginning_has_the_probabilities_of_its_own_tokens_and_of_what_ends_it() -> None:
    fill = "a b c"
    said = written(fill, -0.5, -1.0, -3.0, -0.25)
    word, two, whole = (numbers(around(), fill, said, one) for one in beginnings(fill))
    assert (word["sum"], round(math.expm1(word["tokens"])), word["end"], word["end_margin"]) == (
        -0.5,
        1,
        0,
        math.log1p(MOST),
    )
    assert (two["sum"], two["least"], two["first"], two["last"]) == (-1.5, -1.0, -0.5, -1.0)
    assert (whole["sum"], whole["mean"], whole["end"]) == (-4.5, -1.5, -0.25)
    assert whole["unsure_tokens"] == 2


@pytest.mark.parametrize(
    ("fill", "name", "value"),
    [
        ("width * heigth", "unknown", 1),
        ("width * height", "unknown", 0),
        ("width", "stands_elsewhere", 0),
        ("", "words", 0),
        ("f(width", "at_end_opener", 0),
        ("width * (", "at_end_opener", 1),
    ],
)
def test_a_text_is_compared_with_the_names_and_lines_around_it(fill: str, name: str, value: float) -> None:
    *_, whole = beginnings(fill)
    assert numbers(around(), fill, written(fill, -1.0, -1.0), whole)[name] == value


def test_a_line_that_stands_elsewhere_is_seen_with_its_head() -> None:
    text = "ledger.add(1)\nledger.open()\nledger.\n"
    at = len(text) - 1
    *_, whole = beginnings("add(1)")
    found = numbers(around(text, at), "add(1)", written("add(1)", -1.0, -1.0), whole)
    assert (found["stands_elsewhere"], found["stands_above"], found["begins_like"]) == (1, 0, math.log1p(2))


def test_the_place_says_what_the_line_is_like() -> None:
    found = around().place
    assert (round(math.expm1(found["head"])), found["tail"], found["deeper"]) == (6, 0, 4)
    assert around("// a", 4).place["in_comment"] == 1


def test_healed_text_is_no_part_of_what_is_written() -> None:
    fill = Fill(Gap(0, prefix=b"ar"), 8, tokens=list(b"area"), log_probs={2: -1.0, 3: -2.0, 4: -0.5})
    fill.rivals[3] = (3.0, 1)
    found = JudgedFill.of(fill, ByteTokens())
    assert [(one.text, one.log_prob, one.margin) for one in found.tokens] == [(b"e", -1.0, 0.0), (b"a", -2.0, 3.0)]
    assert found.end == JudgedToken(b"", -0.5, 0.0)
    assert Beginning(2, 0, is_whole=True) in beginnings("ea")
