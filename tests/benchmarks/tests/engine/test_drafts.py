"""The benchmark of drafts: the arms fill the same texts, and their passes add up to the tokens."""

from dataclasses import replace

import pytest
from tests.benchmarks.engine.drafts import ARMS, measure, rows
from tests.model import tiny, tiny_masks
from tests.model.fim import tiny_fim

from lacuna_model.core.params import InfillRequest, Region

MODEL = tiny_fim.loaded()


def request(start: int, end: int, language: str = "python") -> InfillRequest:
    region = Region(start, end, max_tokens=10)
    return InfillRequest(text=tiny.CODE, regions=(region,), path=f"a.{language}", language=language)


@pytest.mark.parametrize("own", [False, True])
def test_every_arm_fills_the_same_texts(own: bool) -> None:
    """With masks of the model itself, or of a smaller one."""
    masked = tiny_masks.masked(tiny_fim.loaded())
    model = masked if own else replace(MODEL, smaller=masked)
    found, pass_ms, _ = measure(model, [request(60, 80), request(200, 220)])
    figures = rows(found)
    assert [row["drafts"] for row in figures] == [*ARMS]
    assert [(row["fills"], row["differing"]) for row in figures] == [(2, 0)] * len(ARMS)
    assert figures[0]["drafting passes a pass"] == 0
    assert all(ms for ms in pass_ms.values())
    chosen, *_ = measure(model, [request(60, 80)], arms=["none", "both"], syntax=True, together=True)
    assert [one.arm for one in chosen] == ["none", "both"]


def test_languages_add_up_to_all_and_without_masks_there_are_two_arms() -> None:
    found, *_ = measure(MODEL, [request(60, 80), request(200, 220, "go"), request(90, 99, "go")])
    figures = {(row["language"], row["drafts"]): row for row in rows(found)}
    assert list(figures) == [(language, arm) for language in ("python", "go", "all") for arm in ("none", "project")]
    for arm in ("none", "project"):
        parts = [figures[language, arm] for language in ("python", "go")]
        assert [part["fills"] for part in parts] == [1, 2]
        for name in ("passes", "tokens"):
            assert sum(part[name] for part in parts) == figures["all", arm][name]
