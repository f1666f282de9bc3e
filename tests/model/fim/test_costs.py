"""Costs of passes are learnt from passes, and say which slots pay for their row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.fim.costs import REMEMBERED, WIDTHS, AcceptanceRates, Ahead, DraftedToken, PassCosts, Round


def learnt(times: int = 60, **ms_by_rows: float) -> PassCosts:
    """Costs after many passes of these widths, given as ``rows_8=50.0``."""
    found = PassCosts()
    for _ in range(times):
        for name, ms in ms_by_rows.items():
            found.saw_pass(int(name.removeprefix("rows_")), ms)
    return found


def costs(ms: float, ms_a_row: float) -> PassCosts:
    """The costs of a model: passes of one row, and of each further one."""
    return learnt(1, rows_1=ms, rows_64=ms + 63 * ms_a_row)


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


def test_what_masks_add_is_a_part_for_the_pass_and_one_for_each() -> None:
    costs = learnt(rows_1=20.0, rows_16=20.0)
    for masks in (2, 7, 4, 12) * 60:
        costs.saw_pass(masks + 1, 20.0 + 3.0 + 0.5 * masks, masks=masks)
    for masks in (1, 6, 14):
        assert costs.added_ms(masks) == pytest.approx(3.0 + 0.5 * masks, rel=0.2)
    assert costs.ms(8) == pytest.approx(20.0)  # without masks


def test_sources_that_have_not_held_lately_are_believed_less_slot_by_slot() -> None:
    rates = AcceptanceRates()
    for slot, held, times in ((1, False, 10 * REMEMBERED), (1, True, 4 * REMEMBERED), (2, False, 30)):
        for _ in range(times):
            rates.saw(DraftedToken(1, 0.8, "masked", slot), held)
    assert rates.of_masks(1) > 0.8 > 0.3 > rates.of_masks(2)
    assert rates.corrected(0.8, "masked", 1) > 0.9 > 0.4 > rates.corrected(0.8, "masked", 2)
    assert rates.corrected(0.8, "project") == pytest.approx(0.8)
    assert rates.of_masks(3) == pytest.approx(5 / 6)


# How often the slots of mask rows hold after a good training.
TRAINED = (0.75, 0.7, 0.65, 0.6, 0.6, 0.6, 0.6)


def of(masked: tuple[float, ...], *, unread: int = 1, verifier_row: float = 0.5, row: float = 0.3) -> Round:
    return Round(costs(60.0, verifier_row), costs(15.0, row), [(0.85, *masked)], unread)


def test_trained_masks_draft_as_far_as_their_rows_pay() -> None:
    many = of(TRAINED).best(8)[0]
    assert many > 3
    assert 1 <= of(TRAINED, verifier_row=12.0).best(8)[0] < many
    assert of(TRAINED, row=60.0).best(8)[0] == 1
    assert of(TRAINED, unread=2000).best(8)[1] <= 0  # tokens that have to be caught up with count


# A machine that reads rows by fours.
BY_FOURS = learnt(1, **{f"rows_{rows}": ms for rows, ms in enumerate((23, 24, 25, 27, 50, 50, 50, 52, 76), 1)})
FLAT = costs(20.0, 0.1)  # reads eight rows at the cost of one
HELD = (0.84, 0.84, 0.84, 0.83, 0.81, 0.8, 0.79)


@pytest.mark.parametrize(
    ("passes", "held", "draft", "best"),
    [
        (BY_FOURS, HELD, [], (0, 3)),  # masks fill up the rows that cost little
        (FLAT, HELD, [], (0, 7)),
        (BY_FOURS, HELD, [0.84] * 3, (3, 0)),  # a likely draft, and no mask behind it that would cost a pass
        (BY_FOURS, HELD, [0.3] * 3, (0, 3)),  # a doubtful draft gives way to masks
        (BY_FOURS, (0.0,) * 7, [], (0, 0)),
        (FLAT, (0.0,) * 7, [], (0, 0)),
        (PassCosts(), HELD, [0.5] * 2, (2, 7)),  # before any pass all is read
    ],
)
def test_drafts_and_masks_are_read_where_they_pay(
    passes: PassCosts, held: tuple[float, ...], draft: list[float], best: tuple[int, int]
) -> None:
    assert Ahead(passes, held).best(1, draft, 7) == best


def test_masks_that_seemed_not_to_pay_are_looked_at_for_a_small_part_of_the_time() -> None:
    shut = costs(20.0, 0.1)
    for _ in range(90):
        shut.saw_pass(8, 400.0, masks=7)
    looks = sum(Ahead(shut, HELD).best(1, [], 7)[1] > 0 for _ in range(2000))
    assert 0 < looks * shut.ms(8, 7) <= 2000 * 20.0 / 50
    while not Ahead(shut, HELD).best(1, [], 7)[1]:
        pass
    for _ in range(90):
        shut.saw_pass(8, 21.0, masks=7)
    assert all(Ahead(shut, HELD).best(1, [], 7)[1] for _ in range(9))
