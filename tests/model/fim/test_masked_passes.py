"""Drafts by mask rows: one pass denoises the slots of all gaps. They change the passes, never the fill."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replace_field
from tests.model import tiny, tiny_masks
from tests.model.fim import tiny_fim
from tests.model.fim.test_draft_model import read_ahead, request
from tests.model.fim.test_passes import beside, turning
from tests.model.fim.test_passes import request as numbered

from lacuna_model.core.params import ReadContext
from lacuna_model.engine import Engine
from lacuna_model.fim.costs import Ahead, PassCosts, Round
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.group_fill import SPARE


def drafted_by(smaller: LoadedFim, seed: int = 0) -> LoadedFim:
    return replace(tiny_fim.loaded(seed), costs=tiny_fim.Free(), smaller=smaller)


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets how many slots every round drafts, and how many a pass reads of a draft and of masks behind it."""

    def chosen(count: int) -> None:
        monkeypatch.setattr(Round, "best", lambda own, most: (min(count, most), float(count > 0)))
        monkeypatch.setattr(Ahead, "best", lambda own, rows, run, most: (min(count, len(run)), min(count, most)))
        monkeypatch.setattr(PassCosts, "looks", lambda *given: False)

    return chosen


def passes_of(model: LoadedFim) -> list[int]:
    """The mask rows of every pass that the model makes from now on."""
    network, found = model.transformer, list[int]()
    read = network.hidden

    def counted(*given: Any) -> Any:
        found.append(sum(span.rows for span in given[3]))
        return read(*given)

    network.hidden = counted  # type: ignore[method-assign]
    return found


@settings(
    max_examples=20,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(0, 3),
    cuts=st.lists(st.integers(5, 50), min_size=1, max_size=3, unique=True).map(sorted),
    count=st.integers(0, tiny_masks.SLOTS),
    drafter=st.sampled_from(["same", "other", "without masks", "itself"]),
    syntax=st.booleans(),
    temperature=st.sampled_from([0.0, 1.0, 4.0]),
)
def test_fills_do_not_depend_on_what_drafts(
    slots: Callable[[int], None],
    seed: int,
    cuts: list[int],
    count: int,
    drafter: str,
    syntax: bool,
    temperature: float,
) -> None:
    """What was read behind a drafted token says nothing where another one is drawn."""
    slots(count)
    places = ((6 * cut, 6 * cut + 3) for cut in cuts)
    asked = request(*places, syntax=syntax, prior=syntax, temperature=temperature, seed=seed)
    alone = Engine(tiny_fim.loaded(seed)).fill(asked)
    masked = tiny_masks.masked(tiny_fim.loaded(seed + (drafter == "other")), seed)
    model = drafted_by(tiny_fim.loaded(seed + 1) if drafter == "without masks" else masked, seed)
    if drafter == "itself":
        model = replace(masked, costs=tiny_fim.Free())
    assert read_ahead(Engine(model), asked).fills == alone.fills


@pytest.mark.parametrize("order", [[], [0, 0, 1, 0, 2, 2, 0, 1], [2, 1, 1, 1]])
def test_requests_that_wait_share_the_pass_that_drafts(slots: Callable[[int], None], order: list[int]) -> None:
    slots(5)
    smaller = tiny_masks.masked(tiny_fim.loaded(1))
    engine, asked = Engine(drafted_by(smaller)), [numbered(number) for number in range(3)]
    for one in asked:
        engine.fill(replace_field(one, task=ReadContext()))
    made = passes_of(smaller)
    found = beside(engine, asked, turning(order), {})
    assert [one.fills for one in found] == [Engine(tiny_fim.loaded()).fill(one).fills for one in asked]
    masked = [gated for gated in made if gated]
    assert max(masked) == 3 * 4
    assert len(masked) <= max(one.stats.nfe for one in found) + 4 < sum(one.stats.nfe for one in found)


def test_a_request_that_ends_takes_back_what_it_waits_for(slots: Callable[[int], None]) -> None:
    slots(5)
    engine, asked = Engine(drafted_by(tiny_masks.masked(tiny_fim.loaded(1)))), [numbered(number) for number in range(3)]
    for steps in range(1, 9):
        found = beside(engine, asked, turning([]), {0: steps, 1: steps + 1})
        assert found[-1].fills == Engine(tiny_fim.loaded()).fill(asked[-1]).fills
        assert engine.model.smaller.masked._waiting == {}  # type: ignore[union-attr]


@pytest.mark.parametrize("own", [False, True])
def test_masks_end_where_the_positions_do(slots: Callable[[int], None], own: bool) -> None:
    """The tables of positions end a few tokens behind the fill. The mask rows are a smaller model's, or its own."""
    slots(5)
    asked = request((40, 60))
    layout = tiny_fim.laid_out(tiny_fim.loaded(), tiny.CODE[:40], tiny.CODE[60:])
    short = len(layout.opening) + sum(map(len, layout.segments)) + 14 + SPARE

    def cut(model: LoadedFim) -> LoadedFim:
        rotations = model.transformer.rotations
        rotations.cos, rotations.sin = rotations.cos[:short], rotations.sin[:short]
        return replace(model, config=replace_field(model.config, max_positions=short), costs=tiny_fim.Free())

    alone, masked = cut(tiny_fim.loaded()), cut(tiny_masks.masked(tiny_fim.loaded()))
    model = masked if own else replace(cut(tiny_fim.loaded()), smaller=masked)
    assert read_ahead(Engine(model), asked).fills == Engine(alone).fill(asked).fills
