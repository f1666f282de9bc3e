"""The benchmark of drafts: the arms fill the same texts, and their passes add up to the tokens."""

from dataclasses import replace

from tests.model import tiny, tiny_drafter
from tests.model.fim import tiny_fim

from lacuna_model.core.params import InfillRequest, Region
from lacuna_model.evaluate.bench import drafts

MODEL = tiny_fim.loaded()


def request(start: int, end: int) -> InfillRequest:
    return InfillRequest(text=tiny.CODE, regions=(Region(start, end, max_tokens=10),), path="a.py")


def test_every_arm_fills_the_same_texts() -> None:
    model = replace(MODEL, drafter=tiny_drafter.random(1, MODEL))
    rows = list(drafts.bench_drafts(model, [request(60, 80), request(200, 220)], syntax=False))
    assert [row.arm for row in rows] == list(drafts.ARMS)
    assert [row.differing for row in rows] == [0] * len(rows)
    assert {row.fills for row in rows} == {2}
    plain = rows[0]
    assert sum(plain.commits.values()) == plain.passes
    assert plain.tokens <= sum(number * count for number, count in plain.commits.items()) + 2 * plain.fills


def test_a_model_without_a_drafter_has_two_arms() -> None:
    rows = list(drafts.bench_drafts(MODEL, [request(60, 80)], syntax=False))
    assert [row.arm for row in rows] == ["no drafts", "project"]
    text = drafts.table(rows, MODEL.costs.table())
    assert text.row_count == 2
