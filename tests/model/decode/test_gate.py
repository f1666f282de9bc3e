"""The gate: the beginnings of a fill, the numbers that each has, and what it says of them."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.core.constraint import UNKNOWN_LOG_PROB
from lacuna_model.core.context import Gap
from lacuna_model.core.params import Region
from lacuna_model.decode.fill import Fill
from lacuna_model.decode.gate import (
    LEAST,
    MOST,
    NOWHERE,
    GapSurroundings,
    Gate,
    JudgedFill,
    JudgedToken,
    Judgement,
    NameUse,
    Node,
    beginnings,
    lines_right,
    numbers,
    probability,
    shipped,
)
from lacuna_model.tokenizer import Tokenizer

AROUND = GapSurroundings(b"x = \n", Region(4, 4, max_lines=1))


# sum <= -2: -1; else least <= -1: 0.5, else 2. Behind it a tree that is a leaf.
NODES = ((0, -2.0, 1, 2, 0.0), (0, 0.0, 1, 1, -1.0), (1, -1.0, 3, 4, 0.0), (0, 0.0, 3, 3, 0.5), (0, 0.0, 4, 4, 2.0))
LEAF = Node(0, 0.0, 5, 5, 0.25)


@pytest.mark.parametrize(("total", "least", "odds"), [(-2.0, 0.0, -0.75), (-1.9, -1.0, 0.75), (0.0, 0.0, 2.25)])
def test_the_leaves_that_a_row_comes_to_are_added(total: float, least: float, odds: float) -> None:
    gate = Gate(("sum", "least"), (0, 5), (*(Node(*one) for one in NODES), LEAF))
    other = {"sum": -9.0, "least": 0.0}
    found = gate.probabilities([{"sum": total, "least": least, "tokens": 3.0}, other])
    assert found == pytest.approx([1 / (1 + math.exp(-one)) for one in (odds, -0.75)])


@given(st.lists(st.tuples(st.text("aé (.\n", min_size=1, max_size=4), st.floats(-9, 0)), max_size=8), st.floats(-9, 0))
def test_no_beginning_is_likelier_than_a_shorter_one(pieces: list[tuple[str, float]], end: float) -> None:
    fill = "".join(text for text, _ in pieces)
    written = JudgedFill([JudgedToken(text.encode(), sure, 1.0) for text, sure in pieces], JudgedToken(b"", end, 1.0))
    found = shipped().judged(fill, written, AROUND)
    assert len(found.lines) == max(len(fill.removesuffix("\n").split("\n")), 1)
    assert all(0 < later <= earlier < 1 for earlier, later in pairwise(found.lines))
    assert all(before[1] >= after[1] for before, after in pairwise(found.words))
    assert all(sure >= found.lines[0] for _, sure in found.words)
    assert all(0 < end <= len(fill.split("\n")[0]) for end, _ in found.words)


def test_a_name_that_nobody_declares_makes_less_likely_what_holds_it() -> None:
    fill = "é.total(x)\nreturn x"
    judgement = Judgement((0.5, 0.4), ((1, 0.9), (7, 0.8)))
    uses = [NameUse("é", "known", 2), NameUse("total", "nowhere", 8), NameUse("x", "known", 10)]
    found = judgement.knowing(fill, uses)
    assert found.words == ((1, 0.9), (7, pytest.approx(NOWHERE * 0.8 / (0.2 + NOWHERE * 0.8))))
    assert found.lines[0] == pytest.approx(NOWHERE * 0.5 / (0.5 + NOWHERE * 0.5))
    assert found.lines[1] < 0.4
    assert found.unknown == 1
    instead = [NameUse("total", "known", 8, is_instead=True)]
    assert judgement.knowing(fill, instead) == found._replace(unknown=0)
    assert judgement.knowing(fill, uses[:1]) is judgement


Confidences = Callable[[str, str, list[float]], tuple[float, ...]]


@pytest.fixture(scope="module")
def confidences(tokenizer: Tokenizer) -> Confidences:
    """The confidence of each line of a fill; the model has written another text, with these log-probabilities."""

    def found(fill: str, written: str, said: list[float]) -> tuple[float, ...]:
        tokens = [token for char in written for token in tokenizer.encode(char)]
        return lines_right(fill, Fill(Gap(0), 99, tokens=tokens, log_probs=dict(enumerate(said))), tokenizer).lines

    return found


def test_the_confidence_of_a_line_counts_the_lines_before_it(confidences: Confidences) -> None:
    said = [-1.0, -0.25, -2.0, -0.5, -4.0]  # a, newline, b, newline, the end
    expected = probability(-1.25), probability(-3.75)
    assert confidences("a\nb\n", "a\nb\n", said) == pytest.approx(expected)


def test_a_line_that_the_constraint_wrote_has_a_low_confidence(confidences: Confidences) -> None:
    """The model writes two lines; the second line that is delivered is another one."""
    said = [-0.1, -0.1, -0.1, -0.1]
    first, second = confidences("a\nc", "a\nb", said)
    assert first == pytest.approx(probability(-0.2))
    assert second == pytest.approx(probability(-0.4 + UNKNOWN_LOG_PROB))


@given(st.text("ab\n", max_size=12), st.text("ab\n", max_size=12), st.lists(st.floats(-12, 0), max_size=16))
def test_every_line_has_a_confidence_no_higher_than_the_line_before(
    confidences: Confidences, fill: str, written: str, said: list[float]
) -> None:
    found = confidences(fill, written, said)
    assert len(found) == max(len(fill.splitlines()), 1)
    assert all(0 < later <= earlier < 1 for earlier, later in pairwise(found))


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


def test_a_beginning_has_the_numbers_for_which_the_gate_was_fitted() -> None:
    said = written(FILL, -0.5, -0.25, -3.0, -0.1, -0.2, -25.0, -0.4)
    word, operator, line, whole = (numbers(around(), FILL, said, one) for one in beginnings(FILL))
    assert {name: round(value, 3) for name, value in line.items() if value} == {
        **{"head": 1.946, "deeper": 4.0, "lines": 1.609, "tokens": 1.386, "unsure_tokens": 1.0},
        **{"sum": -3.75, "least": -3.0, "mean": -1.25, "first": -0.5, "last": -3.0, "end": -0.1},
        **{"margin": 1.099, "first_margin": 1.099, "end_margin": 1.099},
        **{"whole_sum": -3.75, "whole_least": -3.0, "whole_end": -0.1, "is_whole": 1.0},
        **{"characters": 2.708, "words": 1.099, "unknown": 1.0},
    }
    assert (word["end"], word["end_margin"], word["whole_sum"], word["unknown"]) == (0, math.log1p(MOST), 0, 0)
    assert (word["rarest"], word["at_end_operator"], operator["at_end_operator"]) == (math.log1p(3), 0, 1)
    assert (whole["least"], whole["end"], whole["stands_above"]) == (LEAST, -0.4, 0)


def test_a_line_that_stands_elsewhere_is_seen_with_its_head() -> None:
    text = "ledger.add(1)\nledger.open()\nledger.\n"
    at = len(text) - 1
    *_, whole = beginnings("add(1)")
    found = numbers(around(text, at), "add(1)", written("add(1)", -1.0, -1.0), whole)
    assert (found["stands_elsewhere"], found["stands_above"], found["begins_like"]) == (1, 0, math.log1p(2))


def test_healed_text_is_no_part_of_what_is_written(tokenizer: Tokenizer) -> None:
    tokens = [token for char in "area" for token in tokenizer.encode(char)]
    fill = Fill(Gap(0, prefix=b"ar"), 8, tokens=tokens, log_probs={2: -1.0, 3: -2.0, 4: -0.5})
    fill.rivals[3] = (3.0, 1)
    found = JudgedFill.of(fill, tokenizer)
    assert [(one.text, one.log_prob, one.margin) for one in found.tokens] == [(b"e", -1.0, 0.0), (b"a", -2.0, 3.0)]
    assert found.end == JudgedToken(b"", -0.5, 0.0)
