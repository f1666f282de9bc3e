"""Costs of passes are learnt from passes, and say which slots pay for their row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.fim.drafting.costs import REMEMBERED, WIDTHS, AcceptanceRates, DraftedToken, PassCosts


def learnt(**ms_by_rows: float) -> PassCosts:
    """Costs after many passes of these widths, given as ``rows_8=50.0``."""
    costs = PassCosts()
    for _ in range(60):
        for name, ms in ms_by_rows.items():
            costs.saw_pass(int(name.removeprefix("rows_")), ms)
    return costs


def test_widths_in_between_are_interpolated() -> None:
    costs = learnt(rows_1=40.0, rows_8=40.0, rows_16=80.0)
    assert costs.ms(4) == pytest.approx(40.0)
    assert costs.ms(12) == pytest.approx(60.0)


@pytest.mark.parametrize(
    ("passes", "rows", "probability", "worth"),
    [
        ({"rows_1": 40.0, "rows_8": 40.0, "rows_16": 200.0}, 4, 0.01, True),  # a row that costs nothing
        ({"rows_1": 40.0, "rows_8": 40.0, "rows_16": 200.0}, 12, 0.3, False),
        ({"rows_1": 40.0, "rows_8": 40.0, "rows_16": 200.0}, 12, 0.6, True),
        ({"rows_1": 40.0, "rows_2": 60.0}, 1, 0.6, True),  # a row that costs half a pass
        ({"rows_1": 40.0, "rows_2": 60.0}, 1, 0.4, False),
        ({}, 5, 0.1, True),  # before any pass
    ],
)
def test_a_slot_is_worth_a_row(passes: dict[str, float], rows: int, probability: float, worth: bool) -> None:
    assert learnt(**passes).worth(rows, probability) is worth


def test_a_row_has_to_pay_for_all_that_share_the_pass() -> None:
    costs = learnt(rows_1=40.0, rows_2=50.0, rows_4=70.0)
    assert costs.worth(1, 0.4)
    costs.saw_pass(2, 50.0, sharing=2)
    assert not costs.worth(2, 0.3)  # a slot saves its request half of a pass of 50 ms, and the row costs 10
    assert costs.worth(2, 0.5)


def test_one_slow_pass_changes_little() -> None:
    """It waited for another program, or compiled."""
    costs = learnt(rows_1=40.0)
    costs.saw_pass(1, 4000.0)
    assert costs.ms(1) < 50.0
    costs = PassCosts()
    for ms in (3_000.0, 10.0, 10.0):
        costs.saw_pass(4, ms)
    assert costs.ms(4) < 20.0


def test_passes_with_masks_say_nothing_of_those_without() -> None:
    costs = learnt(rows_1=1.5, rows_8=1.6)
    for rows in (2, 4, 8) * 30:
        costs.saw_pass(rows, 3.0, masks=rows - 1)
    assert costs.ms(4) == pytest.approx(1.55, abs=0.05)
    assert costs.ms(4, 3) == pytest.approx(3.0, rel=0.1)
    assert costs.worth(1, 0.2)


def test_a_model_that_has_only_read_masks_knows_what_they_cost() -> None:
    costs = PassCosts()
    for _ in range(60):
        costs.saw_pass(8, 3.0, masks=7)
    assert costs.ms(8, 7) == pytest.approx(3.0)
    assert costs.ms(8) < 3.0


@given(st.lists(st.tuples(st.integers(1, 80), st.floats(0.1, 1e4)), min_size=1, max_size=40))
def test_a_wider_pass_never_costs_less(seen: list[tuple[int, float]]) -> None:
    costs = PassCosts()
    for rows, ms in seen:
        costs.saw_pass(rows, ms)
    estimates = [costs.ms(rows) for rows in range(1, 100)]
    assert estimates == sorted(estimates)


@pytest.mark.parametrize("width", [one for one in WIDTHS if 1 < one < 24])
def test_a_pass_of_any_width_that_took_seconds_is_not_believed_once_wider_ones_took_less(width: int) -> None:
    """A fill begins with such a pass, whatever is drafted. Without drafts the others have one row."""
    costs = PassCosts()
    for rows, ms in ((1, 3.0), (width, 3_000.0), (1, 3.0)):
        costs.saw_pass(rows, ms)
    assert not costs.worth(1, 0.5)
    for _ in range(10):
        costs.saw_pass(24, 3.4)
    for rows in range(1, 9):
        assert costs.worth(rows, 0.5)


@pytest.mark.parametrize("width", [48, 64, 128, 192])
def test_a_pass_wider_than_any_other_that_took_seconds_leaves_more_rows_worth_their_cost(width: int) -> None:
    """What it would cost to read its rows in several of the narrower passes is more than enough."""
    costs = PassCosts()
    for rows, ms in ((1, 3.0), (24, 3.4), (width, 3_000.0)):
        costs.saw_pass(rows, ms)
    assert costs.worth(24, 0.5)


def test_what_masks_add_is_a_part_for_the_pass_and_one_for_each() -> None:
    costs = learnt(rows_1=20.0, rows_16=20.0)
    for masks in (2, 7, 4, 12) * 60:
        costs.saw_pass(masks + 1, 20.0 + 3.0 + 0.5 * masks, masks=masks)
    for masks in (1, 6, 14):
        assert costs.added_ms(masks) == pytest.approx(3.0 + 0.5 * masks, rel=0.2)
    assert costs.ms(8) == pytest.approx(20.0)


def test_a_row_of_context_is_taken_to_cost_what_a_wide_pass_says_until_some_were_read() -> None:
    costs = learnt(rows_1=20.0, rows_8=48.0)
    assert costs.reading_ms(100) == pytest.approx(400.0)
    costs.saw_reading(16, 32.0)
    assert costs.reading_ms(100) == pytest.approx(200.0)


def test_a_pass_that_is_wider_than_those_seen_says_what_rows_cost_and_not_what_masks_add() -> None:
    costs = learnt(rows_1=20.0, rows_8=24.0)
    costs.saw_pass(48, 400.0, masks=21)
    assert costs.added_ms(7) == pytest.approx(10.0)  # half of a pass, as before any was seen
    assert costs.ms(48) == pytest.approx(390.0)
    assert costs.ms(8) == pytest.approx(24.0)


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
