"""Sources of drafts are believed by how their drafts have held: in the model first, then in the document."""

import pytest

from lacuna_model.fim.drafting.acceptance_rates import REMEMBERED, AcceptanceRates, DraftedToken


def told(rates: AcceptanceRates, slot: int, held: bool, times: int = 30) -> None:
    for _ in range(times):
        rates.saw(DraftedToken(1, 0.8, "masked", slot), slot, held)


def test_sources_that_have_not_held_are_believed_less_slot_by_slot() -> None:
    rates = AcceptanceRates()
    told(rates, 1, True)
    told(rates, 2, False)
    assert rates.usual("masked", 1) > 0.8 > 0.3 > rates.usual("masked", 2)
    assert rates.corrected(0.8, "masked", 1) > 0.9 > 0.4 > rates.corrected(0.8, "masked", 2)
    assert rates.corrected(0.8, "project") == pytest.approx(0.8)
    assert rates.usual("old") == pytest.approx(2 / 3)
    assert rates.usual("masked", 3) == pytest.approx(5 / 6)


def test_a_document_begins_with_the_rates_of_the_model_and_then_has_its_own() -> None:
    model = AcceptanceRates()
    told(AcceptanceRates(model), 1, False, 100)
    other = AcceptanceRates(model)
    assert other.usual("masked", 1) == model.usual("masked", 1)
    assert other.usual("masked", 1) < 0.2
    assert other.corrected(0.8, "masked", 1) == model.corrected(0.8, "masked", 1)
    assert other.corrected(0.8, "masked", 1) < 0.2
    told(other, 1, True)
    assert other.usual("masked", 1) > 0.7 > model.usual("masked", 1)
    assert other.asked == {1: 30}


def test_a_model_forgets_old_drafts() -> None:
    model = AcceptanceRates()
    told(model, 1, False, 10 * REMEMBERED)
    told(model, 1, True, 2 * REMEMBERED)
    assert model.usual("masked", 1) > 0.7
