import pytest

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_model.editing.part import MAX_LINES, EditedPart


def part_of(before: str, region: str, after: str = "") -> EditedPart:
    text = (before + region + after).encode()
    start = len(before.encode())
    return EditedPart.of(text, Region(start, start + len(region.encode())))


def test_blank_lines_and_the_first_indentation_stay_outside() -> None:
    part = part_of("class A:\n", "\n    def b(self):\n        pass\n\n", "x\n")
    assert (part.before, part.after, part.indentation) == ("\n    ", "\n", "    ")
    assert part.text == "def b(self):\n        pass\n"
    assert part.old == "    def b(self):\n        pass\n"


def test_line_ends_are_those_of_the_document() -> None:
    part = part_of("", "a = 1\r\nb = 2\r\n", "c\r\n")
    assert part.old == "a = 1\nb = 2\n"
    assert part.whole(part.written("a = 3\nb = 2\n")) == "a = 3\r\nb = 2\r\n"


@pytest.mark.parametrize("ahead", ["", "\ufeff"])
def test_a_byte_order_mark_stays_whether_the_region_has_it_or_not(ahead: str) -> None:
    within = "\ufeff".removeprefix(ahead)
    part = part_of(ahead, f"{within}  a = 1\n", "b = 2\n")
    assert (part.before, part.indentation, part.old, part.text) == (f"{within}  ", "  ", "  a = 1\n", "a = 1\n")
    assert part.whole(part.written("a = 3\n")) == f"{within}  a = 3\n"
    with pytest.raises(RequestError, match="nothing to rewrite"):
        part_of(ahead, f"{within}\n", "b = 2\n")


def test_a_region_within_a_line_is_refused() -> None:
    with pytest.raises(RequestError, match="whole lines"):
        part_of("x = ", "a\n")
    with pytest.raises(RequestError, match="whole lines"):
        part_of("", "x = ", "a\n")


def test_a_region_of_too_many_lines_is_refused_with_the_limit() -> None:
    with pytest.raises(RequestError, match=f"5,001 lines; at most {MAX_LINES}"):
        part_of("", "x = 1\n" * 5000)
    assert part_of("", "x = 1\n" * MAX_LINES).old
