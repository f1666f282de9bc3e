import pytest
from tests.benchmarks.refactor.calibration import KINDS, Calibrated, Judged, calibrated, judge, table
from tests.server.refactor.bench import Scripted

from lacuna_model.core.errors import RequestError

CODE = '''def f(a: int, b: str) -> int:
    """Returns a number."""
    if a > len(b):
        return max(b, key=ord)
    return a
'''


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("annotation", ["int", "str", "int"]),
        ("condition", ["a > len(b)"]),
        ("keyword argument", ["ord"]),
        ("docstring", ["Returns a number."]),
    ],
)
def test_parts_are_taken_out_and_their_fills_compared_with_the_text(kind: str, texts: list[str]) -> None:
    answer = Scripted(lambda region: texts[0])
    answer.sure = lambda region: 0.25
    assert list(judge([CODE], kind, answer, 9, 0)) == [
        Judged(kind, 0.25, text == texts[0], text, texts[0]) for text in texts
    ]
    assert [len(request.regions) for request in answer.requests] == [len(texts)]
    asked = answer.requests[0]
    for region in asked.regions:
        assert asked.text.encode()[region.start : region.end].decode() not in texts


def test_no_more_places_are_judged_than_wanted() -> None:
    answer = Scripted(lambda region: "int")
    answer.sure = lambda region: 1.0
    assert len(list(judge([CODE, CODE], "annotation", answer, 2, 0))) == 2
    assert len(list(judge([CODE, CODE], "annotation", answer, 5, 0))) == 5


def test_a_refused_fill_is_not_counted() -> None:
    assert list(judge([CODE], "condition", Scripted(lambda region: None), 9, 0)) == []


def test_texts_without_a_place_are_refused() -> None:
    for kind in KINDS:
        with pytest.raises(RequestError, match=kind):
            list(judge(["x = 1\n"], kind, Scripted(), 9, 0))


def test_fills_are_counted_from_each_bound_on_and_up_to_the_next() -> None:
    found = [Judged("condition", sure, right, "", "") for sure, right in ((0.05, False), (0.5, True), (0.95, True))]
    rows = {row.at_least: row for row in calibrated(found)}
    assert rows[0.0] == Calibrated(0.0, 3, 2, 0, 0)
    assert rows[0.01] == Calibrated(0.01, 3, 2, 1, 0)
    assert rows[0.5] == Calibrated(0.5, 2, 2, 1, 1)
    assert rows[0.9] == Calibrated(0.9, 1, 1, 1, 1)
    assert table("condition", calibrated(found)).row_count == len(rows)
