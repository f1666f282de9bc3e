"""Files with the marks of a merge: what a fill is checked in."""

import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import certain, fill, require

from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint
from lacuna_model.syntax.proving.stand_ins import one_side

CONFLICT = b"<<<<<<< HEAD\nours\n||||||| base\nboth\n=======\ntheirs\n>>>>>>> branch\n"
TEXT = b"above\n" + CONFLICT + b"below\n"


def at(text: bytes, word: bytes, *, length: int = 0) -> Region:
    return Region(text.index(word), text.index(word) + length)


@pytest.mark.parametrize(
    ("word", "left"),
    [
        (b"above", b"above\nours\nbelow\n"),
        (b"below", b"above\nours\nbelow\n"),
        (b"ours", b"above\nours\nbelow\n"),
        (b"theirs", b"above\ntheirs\nbelow\n"),
        (b"both", TEXT),
    ],
)
def test_the_side_of_the_gap_stays(word: bytes, left: bytes) -> None:
    text, (region,) = one_side(TEXT, [at(TEXT, word, length=2)])
    assert text == left
    assert text[region.start : region.end] == word[:2]


def test_a_conflict_with_gaps_on_both_sides_or_in_its_marks_stays_whole() -> None:
    for regions in ([at(TEXT, b"ours"), at(TEXT, b"theirs")], [at(TEXT, b"ours", length=20)], [at(TEXT, b"=======")]):
        assert one_side(TEXT, regions) == (TEXT, regions)


def test_every_region_moves_by_the_conflicts_above_it() -> None:
    text = CONFLICT + b"middle\n" + CONFLICT + b"end"
    left, regions = one_side(text, [at(text, b"middle"), at(text, b"end")])
    assert [left[region.start :] for region in regions] == [b"middle\nours\nend", b"end"]


@pytest.mark.parametrize("text", [b"=======\nb\n", b"<<<<<<< HEAD\na\n=======\nb\n", b"<<<<<<<a\n=======\n>>>>>>>\n"])
def test_marks_alone_are_no_conflict(text: bytes) -> None:
    assert one_side(text, [Region(0, 0)])[0] == text


@pytest.mark.parametrize("fill_text", ["f(1)", "f(\n    1)"])
def test_a_fill_beside_a_conflict_is_checked_as_in_a_clean_file(tokens: SmallTokens, fill_text: str) -> None:
    before, after = b"x = ", b"\n<<<<<<< HEAD\ny = 1\n=======\ny = 2\n>>>>>>> branch\n"
    for written, is_taken in ((fill_text, True), ("1 2", False)):
        region = Region(len(before), len(before), max_tokens=32)
        constraint = SyntaxConstraint(before + after, [region], require("python"), tokens)
        verdict = fill(constraint, certain([tokens.encode(written)], tokens.eog_id), [32], tokens.eog_id)
        assert (verdict.fills == (written,)) == is_taken
