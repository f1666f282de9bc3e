"""Samples have the prompt of a fill first; what is behind it is the rows' own, and the end closes the answer."""

from random import Random

import pytest
from tests.model import tiny
from tests.model.fim import tiny_fim

from training.edits import EditExample
from training.rows.samples import COPIED, RowSample, edit, infill

MODEL = tiny_fim.loaded()
TOKENIZER, FIM = MODEL.tokenizer, MODEL.fim


STANDING = "\n    return value\n"


def example(updated: str = "\n    return item\n", standing: str = STANDING) -> EditExample:
    path, done = ("p", "2", "MIT", "p/a.py", "python"), ("import os\n", "def f(value):\n", "def f(item):\n")
    return EditExample(*path, *done, standing, updated, "x = 1\n")


def said(tokens: list[int]) -> str:
    return b"".join(map(TOKENIZER.token_bytes, tokens)).decode()


def behind(one: RowSample) -> str:
    return said(list(one.ids[one.answer : -1]))


def test_an_edit_writes_the_lines_anew_behind_the_change() -> None:
    one = edit(example(), TOKENIZER, FIM)
    assert one is not None
    assert one.ids[0] == FIM.prefix
    assert one.ids[one.first - 1] == FIM.middle
    context = [token for token in one.ids[: one.first] if token not in (FIM.prefix, FIM.suffix, FIM.middle)]
    assert said(context) == "import os\ndef f(item):\n\n    return value\nx = 1\n"
    assert one.ids[one.first] == FIM.file_sep
    assert behind(one) == " return item\n"
    assert one.ids[-1] in FIM.ends
    assert not one.is_nothing
    assert one.weights[0] == 1.0
    assert len(one.weights) == len(one.ids) - one.answer
    assert min(one.weights[1:]) == pytest.approx(max(one.weights[1:]) * COPIED)
    assert sum(one.weights[1:]) == pytest.approx(1.0)


def test_an_edit_ends_where_the_lines_are_as_they_were() -> None:
    below = "".join(f"    total += values[{row}]\n" for row in range(6))
    one = edit(example(example().updated + below, example().standing + below), TOKENIZER, FIM)
    assert one is not None
    assert one.ids[-1] not in FIM.ends
    written = said(list(one.ids[one.answer :]))
    assert written.startswith(" return item\n")
    assert len(TOKENIZER.encode(written)) < len(TOKENIZER.encode(" return item\n" + below)) / 2


@pytest.mark.parametrize(
    "updated",
    ["    return " + "item + other_value * " * 8 + "1\n", "        return item\n"],
    ids=["unforeseen", "blanks"],
)
def test_what_nobody_foresees_and_moved_blanks_are_left_out(updated: str) -> None:
    assert edit(example(updated), TOKENIZER, FIM) is None


def test_a_fill_is_taken_from_the_text() -> None:
    rng = Random(0)
    found = [one for one in (infill(tiny.CODE, TOKENIZER, FIM, rng) for _ in range(40)) if one]
    assert len(found) > 20
    for one in found:
        assert one.ids[one.first] == FIM.middle
        assert one.answer == one.first + 1
        assert behind(one) in tiny.CODE
    assert any("\n" in behind(one) for one in found)
