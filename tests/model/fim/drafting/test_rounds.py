"""The way of drafting that yields most tokens a millisecond, by given costs."""

import pytest

from lacuna_model.fim.drafting.costs import PassCosts
from lacuna_model.fim.drafting.rounds import Ahead, Round, confident

# How often the slots of mask rows hold after a good training, and after none.
TRAINED, UNTRAINED = (0.75, 0.7, 0.65, 0.6, 0.6, 0.6, 0.6), (0.02,) * 7


def costs(ms: float, ms_a_row: float) -> PassCosts:
    """The costs of a model: passes of one row, and of each further one."""
    found = PassCosts()
    for rows in (1, 64):
        found.saw_pass(rows, ms + (rows - 1) * ms_a_row)
    return found


def of(masked: tuple[float, ...], *, canvases: int = 1, verifier_row: float = 0.5, drafter_row: float = 0.3) -> Round:
    return Round(costs(60.0, verifier_row), costs(15.0, drafter_row), canvases, 0.85, masked)


def masks(one: Round, unread: int, step_ms: float) -> int:
    """How many mask rows each canvas gets; 0 where one token after another is better."""
    count, rate = one.parallel(unread)
    return count if rate > one.in_turn(step_ms) else 0


def test_trained_mask_rows_draft_in_parallel_and_untrained_ones_do_not() -> None:
    assert masks(of(TRAINED), 1, 15.0) > 2
    assert masks(of(UNTRAINED), 1, 15.0) == 0


def test_mask_rows_that_cost_as_much_as_passes_do_not_pay() -> None:
    assert masks(of(TRAINED, drafter_row=15.0), 1, 15.0) == 0


def test_where_a_token_in_turn_costs_little_it_is_drafted_in_turn() -> None:
    assert masks(of(TRAINED), 1, 1.0) == 0


def test_several_canvases_share_a_parallel_pass() -> None:
    """Alone, one token after another is better: 85 of 100 hold, and mask rows cost something."""
    assert masks(of((0.55,) * 7, drafter_row=1.5), 1, 8.0) == 0
    assert masks(of((0.55,) * 7, drafter_row=1.5, canvases=3), 3, 8.0) > 0


def test_no_more_masks_than_rows_pay() -> None:
    many, few = masks(of(TRAINED), 1, 15.0), masks(of(TRAINED, verifier_row=12.0), 1, 15.0)
    assert 0 < few < many


def test_tokens_that_have_to_be_caught_up_with_count() -> None:
    assert masks(of(TRAINED), 200, 15.0) == 0


def test_before_any_pass_all_masks_are_drafted_once() -> None:
    one = Round(PassCosts(), PassCosts(), 1, 0.66, (0.66,) * 5)
    assert one.parallel(1)[0] == 5
    assert not one.again([[0.7] * 6], 0.0, 0)


@pytest.mark.parametrize(("drafter_ms", "pays"), [(4.0, True), (40.0, False)])
def test_a_further_pass_pays_where_it_costs_little(drafter_ms: float, pays: bool) -> None:
    one = Round(costs(60.0, 0.5), costs(drafter_ms, 0.1), 1, 0.9, TRAINED)
    assert one.again([[0.9, 0.6, 0.5, 0.3, 0.2, 0.2, 0.2, 0.2]], 15.0, 7) is pays


def test_likely_slots_are_read_as_tokens_up_to_the_first_that_is_not() -> None:
    assert confident([0.9, 0.6, 0.3, 0.9]) == 2
    assert confident([0.9, 0.9]) == 2
    assert confident([0.1, 0.9]) == 1


def reads(*ms: float) -> PassCosts:
    """The costs of a model whose passes of 1, 2, .. rows take so many milliseconds each."""
    found = PassCosts()
    for rows, one in enumerate(ms, 1):
        found.saw_pass(rows, one)
    return found


# A machine that reads rows by fours, and one that reads eight at the cost of one.
BY_FOURS = reads(23, 24, 25, 27, 50, 50, 50, 52, 76)
FLAT = costs(20.0, 0.1)
HELD = (0.84, 0.84, 0.84, 0.83, 0.81, 0.8, 0.79)


def test_where_there_is_no_draft_masks_fill_up_the_rows_that_cost_little() -> None:
    assert Ahead(BY_FOURS, HELD).best(1, [], 7) == (0, 3)
    assert Ahead(FLAT, HELD).best(1, [], 7) == (0, 7)


def test_a_likely_draft_is_read_and_no_mask_behind_it_that_would_cost_a_pass() -> None:
    assert Ahead(BY_FOURS, HELD).best(1, [0.84] * 3, 7) == (3, 0)


def test_behind_a_sure_draft_masks_pay_for_their_rows() -> None:
    slots, masks = Ahead(FLAT, HELD).best(1, [0.99] * 4, 7)
    assert slots == 4
    assert masks > 2


def test_a_doubtful_draft_gives_way_to_masks() -> None:
    assert Ahead(BY_FOURS, HELD).best(1, [0.3, 0.3, 0.3], 7) == (0, 3)


def test_masks_that_never_hold_are_not_read() -> None:
    for passes in (BY_FOURS, FLAT):
        assert Ahead(passes, (0.0,) * 7).best(1, [], 7) == (0, 0)


def test_masks_count_once_for_every_request_that_shares_the_pass() -> None:
    shared = reads(23, 24, 25, 27, 50, 50, 50, 52, 76)
    shared.saw_pass(4, 27.0, sharing=4)
    assert Ahead(shared, HELD).best(4, [], 7) == (0, 0)


@pytest.mark.parametrize(("masked_ms", "reads_masks"), [(3.0, True), (60.0, False)])
def test_masks_are_read_unless_a_pass_with_them_takes_too_long(masked_ms: float, reads_masks: bool) -> None:
    flat = costs(1.5, 0.01)
    for _ in range(90):
        flat.saw_pass(8, masked_ms, masked=True)
    ahead = Ahead(flat, HELD)
    assert (ahead.best(1, [], 7)[1] > 0) is (ahead.token_ms < 1.5) is reads_masks
    assert ahead.best(1, [0.8] * 4, 7)[0] == 4


def test_before_any_pass_all_is_read() -> None:
    assert Ahead(PassCosts(), HELD).best(1, [0.5, 0.5], 3) == (2, 3)


def test_a_drafter_that_holds_less_is_slower_than_masks_unless_their_rows_are_dear() -> None:
    by_fours = reads(23, 24, 25, 27, 50, 50, 50, 52, 76)
    by_fours.saw_proposal(2.5)
    ahead = Ahead(by_fours, HELD)
    assert ahead.token_ms < ahead.in_turn_ms(0.5) < by_fours.ms(1)
    dear = Ahead(reads(23, 40, 60, 80, 100, 120, 140, 160), HELD)
    assert dear.in_turn_ms(0.9) < dear.token_ms
