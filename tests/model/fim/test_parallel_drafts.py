"""Drafts by mask rows: one pass denoises the slots of all gaps. They change the passes, never the fill."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replace_field
from tests.model import tiny, tiny_masks
from tests.model.fim import tiny_fim
from tests.model.fim.test_draft_model import read_ahead, request

from lacuna_model.backends.readers import new_cache
from lacuna_model.core.params import FillGaps
from lacuna_model.engine import Engine
from lacuna_model.fim import draft_model
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.draft_model import DraftModel, ReadCanvas
from lacuna_model.fim.drafting.acceptance_rates import AcceptanceRates
from lacuna_model.fim.drafting.costs import PassCosts
from lacuna_model.fim.drafting.drafts import ProposedToken
from lacuna_model.fim.drafting.rounds import Round
from lacuna_model.fim.loading import LoadedFim, Way
from lacuna_model.fim.prompt import fill_opening
from lacuna_model.fim.tracks import Track
from lacuna_model.group_fill import SPARE

KEY = (0, 0)


def drafted_by(smaller: LoadedFim, seed: int = 0) -> LoadedFim:
    return replace(tiny_fim.loaded(seed), smaller=smaller)


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, bool], None]:
    """Sets how many mask rows every round has, and whether it denoises further times."""

    def chosen(masks: int, again: bool) -> None:
        monkeypatch.setattr(Round, "parallel", lambda *given: (masks, float(masks)))
        monkeypatch.setattr(Round, "in_turn", lambda *given: 0.0)
        monkeypatch.setattr(Round, "again", lambda *given: again)

    return chosen


def passes_of(model: LoadedFim) -> list[int]:
    """The mask rows of every pass that the model makes from now on."""
    network, found = model.transformer, list[int]()
    read = network.hidden

    def counted(*given: Any) -> Any:
        found.append(given[3])
        return read(*given)

    network.hidden = counted  # type: ignore[method-assign]
    return found


@settings(
    max_examples=12,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(0, 3),
    cuts=st.lists(st.integers(5, 50), min_size=1, max_size=3, unique=True).map(sorted),
    masks=st.integers(0, tiny_masks.SLOTS - 1),
    again=st.booleans(),
    syntax=st.booleans(),
)
def test_fills_do_not_depend_on_mask_rows(
    ways: Callable[[int, bool], None], seed: int, cuts: list[int], masks: int, again: bool, syntax: bool
) -> None:
    """The smaller model is another one, or the same, whose drafts hold wherever they are not those of mask rows."""
    ways(masks, again)
    asked = request(*((6 * cut, 6 * cut + 3) for cut in cuts), syntax=syntax, prior=syntax)
    alone = Engine(tiny_fim.loaded(seed)).fill(asked)
    for smaller in (seed, seed + 1):
        model = drafted_by(tiny_masks.masked(tiny_fim.loaded(smaller), seed), seed)
        assert read_ahead(Engine(model), asked).fills == alone.fills


def test_other_candidates_do_not_depend_on_them(ways: Callable[[int, bool], None]) -> None:
    ways(3, True)
    asked = replace_field(request((40, 60)), task=FillGaps(3))
    alone = Engine(tiny_fim.loaded()).fill(asked)
    drafted = read_ahead(Engine(drafted_by(tiny_masks.masked(tiny_fim.loaded()))), asked)
    assert (drafted.fills, drafted.alternatives) == (alone.fills, alone.alternatives)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_round_denoises_the_slots_of_all_gaps_in_one_pass(ways: Callable[[int, bool], None], steps: int) -> None:
    ways(4, steps > 1)
    smaller = tiny_masks.masked(tiny_fim.loaded(1))
    engine, asked = Engine(drafted_by(smaller)), request((40, 60), (150, 170), (300, 320))
    made = passes_of(smaller)
    result = read_ahead(engine, asked)
    masked = [gated for gated in made if gated]
    assert max(masked) == 3 * 4
    assert set(masked) <= {4, 8, 12}
    assert len(masked) <= steps * result.stats.nfe


def test_a_model_without_mask_rows_makes_no_such_pass(ways: Callable[[int, bool], None]) -> None:
    ways(4, True)
    smaller = tiny_fim.loaded()
    made = passes_of(smaller)
    read_ahead(Engine(drafted_by(smaller)), request((40, 60)))
    assert set(made) == {0}


def drafting(way: Way) -> DraftModel:
    """The tiny model with mask rows, after the prompt of one gap."""
    model = replace(tiny_masks.masked(tiny_fim.loaded(1)), way=way)
    layout = tiny_fim.laid_out(model, tiny.CODE[:200], tiny.CODE[230:])
    context = new_cache(model)
    assert isinstance(context, FimContext)
    context.update(layout)
    found = DraftModel(model, context, layout, fill_opening(model.fim, layout), PassCosts(), AcceptanceRates())
    found.prepare({KEY: [5]})
    return found


@pytest.mark.parametrize("way", ["parallel", "refined", ""])
def test_what_was_read_as_tokens_is_what_is_drafted_in_turn(ways: Callable[[int, bool], None], way: Way) -> None:
    """The first slot always; after further steps the next ones, too, as far as the steps agree."""
    ways(4, way == "")
    masked, plain = drafting(way), drafting("in turn")
    written, read = [5], 0
    found: ProposedToken | None = masked.proposal(KEY, written)
    while found is not None and not found.slot:
        expected = plain.proposal(KEY, written)
        assert (found.token, found.probability) == (expected.token, pytest.approx(expected.probability, rel=1e-3))
        written, read = [*written, found.token], read + 1
        found = masked.known(KEY, written)
    assert read >= (1 if way == "parallel" else 2)


@pytest.mark.parametrize("way", ["in turn", "parallel", "refined"])
def test_a_way_that_is_given_is_kept(ways: Callable[[int, bool], None], way: Way) -> None:
    ways(4, way == "parallel")
    smaller = replace(tiny_masks.masked(tiny_fim.loaded(1)), way=way)
    made = passes_of(smaller)
    result = read_ahead(Engine(drafted_by(smaller)), request((40, 60)))
    rounds = result.stats.nfe
    masked = sum(gated > 0 for gated in made)
    assert masked == 0 if way == "in turn" else rounds // 2 < masked <= (2 if way == "refined" else 1) * rounds


def test_the_way_that_seems_slower_is_tried_now_and_then(
    ways: Callable[[int, bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ways(4, False)
    monkeypatch.setattr(Round, "in_turn", lambda *given: 1e9)
    monkeypatch.setattr(draft_model, "TRY_AGAIN", 3)
    monkeypatch.setattr(draft_model, "FIRST_TRIAL", 2)
    smaller = tiny_masks.masked(tiny_fim.loaded(1))
    made = passes_of(smaller)
    result = read_ahead(Engine(drafted_by(smaller)), request((40, 60)))
    assert 0 < sum(gated > 0 for gated in made) <= result.stats.nfe // 3 + 1


def test_mask_rows_end_where_the_positions_do(ways: Callable[[int, bool], None]) -> None:
    """The tables of positions end a few tokens behind the fill."""
    ways(4, True)
    asked = request((40, 60))
    layout = tiny_fim.laid_out(tiny_fim.loaded(), tiny.CODE[:40], tiny.CODE[60:])
    short = len(layout.opening) + sum(map(len, layout.segments)) + 14 + SPARE

    def cut(model: LoadedFim) -> LoadedFim:
        config = replace_field(model.config, max_positions=short)
        model.transformer.rotations.cos = model.transformer.rotations.cos[:short]
        model.transformer.rotations.sin = model.transformer.rotations.sin[:short]
        return replace(model, config=config)

    alone = Engine(cut(tiny_fim.loaded())).fill(asked)
    smaller = cut(tiny_masks.masked(tiny_fim.loaded()))
    assert read_ahead(Engine(replace(cut(tiny_fim.loaded()), smaller=smaller)), asked).fills == alone.fills


def line(ids: Sequence[int], proposals: Sequence[int], masked: Sequence[int] = ()) -> ReadCanvas:
    track = Track()
    track.become(ids, 0)
    return ReadCanvas(track, proposals=[(one, 0.9) for one in proposals], masked=[(one, 0.5) for one in masked])


@pytest.mark.parametrize(
    ("ids", "token", "slot"),
    [
        ([1, 2, 3], 4, 0),
        ([1, 2, 3, 4], 5, 1),
        ([1, 2, 3, 4, 5], 6, 2),
        ([1, 2, 3, 4, 5, 6], None, 0),
        ([1, 2, 3, 9], None, 0),
        ([1, 2, 3, 4, 9], None, 0),
        ([1, 2], None, 0),
        ([1, 9, 3], None, 0),
    ],
)
def test_slots_follow_only_what_was_drafted_before_them(ids: list[int], token: int | None, slot: int) -> None:
    found = line([1, 2, 3], [4], [5, 6]).proposal(ids)
    assert (found and found.token, found.slot if found else 0) == (token, slot)


def test_tokens_that_were_read_ahead_have_proposals_of_their_own() -> None:
    seen = line([1, 2, 3, 4], [3, 8], [9])
    assert [seen.proposal(ids) for ids in ([1], [1, 2])] == [None, None]
    found = [seen.proposal(ids) for ids in ([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 8], [1, 2, 3, 7])]
    assert [one and (one.token, one.slot) for one in found] == [(3, 0), (8, 0), (9, 1), None]
