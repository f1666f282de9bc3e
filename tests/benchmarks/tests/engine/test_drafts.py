"""The benchmark of drafts: the arms fill the same texts, and their passes add up to the tokens."""

from dataclasses import replace

import pytest
from tests.benchmarks.engine.drafts import ARMS, measure, rows
from tests.model import tiny, tiny_masks
from tests.model.fim import tiny_fim

from lacuna_model.core.params import InfillRequest, Region


def request(start: int, end: int) -> InfillRequest:
    return InfillRequest(tiny.CODE, (Region(start, end, max_tokens=10),), path="a.py", language="python")


@pytest.mark.parametrize("own", [False, True])
def test_every_arm_fills_the_same_texts(own: bool) -> None:
    """With masks of the model itself, or of a smaller one."""
    masked = tiny_masks.masked(tiny_fim.loaded())
    model = masked if own else replace(tiny_fim.loaded(), smaller=masked)
    found, pass_ms, _ = measure(model, [request(60, 80), request(200, 220)])
    figures = rows(found)
    assert [row["drafts"] for row in figures] == [*ARMS]
    assert [(row["fills"], row["differing"]) for row in figures] == [(2, 0)] * len(ARMS)
    assert all(ms for ms in pass_ms.values())
    chosen, *_ = measure(model, [request(60, 80)], arms=["none", "both"], syntax=True, together=True)
    assert [one.arm for one in chosen] == ["none", "both"]
