"""The benchmark of drafts: the arms fill the same texts, and their passes add up to the tokens."""

from dataclasses import replace

import pytest
from tests.benchmarks.engine import drafts
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
    gaps = tuple(Region(start, start + 9, max_tokens=6) for start in (60, 200))
    ask = InfillRequest(text=tiny.CODE, regions=gaps, path="a.py", language="python")
    found = drafts.bench_drafts(model, [request(60, 80), ask], alone=True)
    assert [(row.language, row.arm) for row in found.drafts] == [("", arm) for arm in drafts.ARMS]
    assert [row.differing for row in found.drafts] == [0] * len(drafts.ARMS)
    assert {row.fills for row in found.drafts} == {2}
    assert all(row.longest > 0 and row.at_once > 0 for row in found.drafts)  # what is drafted depends on times
    assert drafts.table(found).row_count == len(drafts.ARMS)
    plain = found.drafts[0]
    assert plain.drafting == 0
    assert sum(plain.commits.values()) == plain.passes


def test_a_model_for_which_nothing_drafts_has_two_arms() -> None:
    found = drafts.bench_drafts(MODEL, [request(60, 80)])
    assert [row.arm for row in found.drafts] == ["none", "project"]
    assert drafts.table(found).row_count == 2


def test_only_the_arms_asked_for_are_compared() -> None:
    model = tiny_masks.masked(tiny_fim.loaded())
    steps: list[int] = []
    found = drafts.bench_drafts(
        model, [request(60, 80)], arms=["none", "both"], syntax=True, advance=lambda: steps.append(1)
    )
    assert [row.arm for row in found.drafts] == ["none", "both"]
    assert len(steps) == 2


def test_languages_add_up_to_all() -> None:
    found = drafts.bench_drafts(MODEL, [request(60, 80), request(200, 220, "go"), request(90, 99, "go")])
    rows = {(row.language, row.arm): row for row in found.drafts}
    assert [row.language for row in found.drafts[::2]] == ["", "python", "go"]
    for arm in ("none", "project"):
        parts = [rows[language, arm] for language in ("python", "go")]
        assert [part.fills for part in parts] == [1, 2]
        assert sum(part.passes for part in parts) == rows["", arm].passes
        assert sum(part.tokens for part in parts) == rows["", arm].tokens


def test_slots_are_accepted_as_often_as_their_drafts_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "first_costs", lambda model: None)  # before any pass was seen, every draft is read
    repeated = tiny.CODE + tiny.CODE
    gap = Region(len(tiny.CODE) + 60, len(tiny.CODE) + 80, max_tokens=10)
    ask = InfillRequest(text=repeated, regions=(gap,), path="a.py", language="python")
    found = drafts.bench_drafts(MODEL, [ask, ask])
    plain, project = found.drafts
    assert plain.accepted == ()
    # A random model seldom writes what the project has: drafts are verified, and almost none holds.
    assert project.accepted
    assert all(0 <= share <= 1 for share in project.accepted)
    assert all(ms > 0 for ms in found.pass_ms.values())
    assert len(found.pass_ms) > 1
