import pytest
from tests.benchmarks.tasks.engines import CutFiller
from tests.benchmarks.tests.fakes import Canned

from lacuna_model.core.params import InfillRequest, Region

HEAD, TAIL = "def f(a):\n", "    return a\n"


def filled(fill: str) -> tuple[str, tuple[str, ...]]:
    region = Region(len(HEAD), len(HEAD))
    engine = CutFiller("cut", Canned("free", lambda *_: fill))
    result = engine.fill(InfillRequest(text=HEAD + TAIL, regions=(region,), path="a.py"))
    return result.status, result.fills


@pytest.mark.parametrize(
    ("fill", "kept"),
    [
        ("    a += 1\n    b = 2\n", "    a += 1\n    b = 2\n"),
        ("    a += 1\n    b = (2\n", "    a += 1\n"),
        ("    a += 1\nb = 2\n", "    a += 1\n"),
        ("  a = (\n", ""),
    ],
)
def test_a_fill_is_cut_to_its_valid_lines(fill: str, kept: str) -> None:
    assert filled(fill) == ("ok", (kept,))


def test_of_two_gaps_the_fewest_lines_are_cut_off() -> None:
    text = "x = \ny = \n"
    engine = CutFiller("cut", Canned("free", lambda _, gap: ("1\n)\n", "2\nz = 3\n(\n")[gap]))
    result = engine.fill(InfillRequest(text=text, regions=(Region(4, 4), Region(9, 9)), path="a.py"))
    assert result.status == "ok"
    assert result.fills == ("1", "2\nz = 3")
