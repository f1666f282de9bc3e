"""How many masks yield most tokens a millisecond, by given costs."""

import pytest

from lacuna_model.fim.drafting.costs import PassCosts
from lacuna_model.fim.drafting.rounds import Ahead, Round

# How often the slots of mask rows hold after a good training, and after none.
TRAINED, UNTRAINED = (0.75, 0.7, 0.65, 0.6, 0.6, 0.6, 0.6), (0.02,) * 7


def costs(ms: float, ms_a_row: float) -> PassCosts:
    """The costs of a model: passes of one row, and of each further one."""
    found = PassCosts()
    for rows in (1, 64):
        found.saw_pass(rows, ms + (rows - 1) * ms_a_row)
    return found


def of(
    masked: tuple[float, ...], *, fills: int = 1, unread: int = 1, verifier_row: float = 0.5, row: float = 0.3
) -> Round:
    return Round(costs(60.0, verifier_row), costs(15.0, row), [(0.85, *masked)] * fills, unread)


def saves(one: Round) -> bool:
    return one.best(8)[1] > 0


def test_trained_masks_draft_and_those_whose_rows_cost_as_much_as_passes_do_not() -> None:
    assert of(TRAINED).best(8)[0] > 3
    assert of(TRAINED, row=60.0).best(8)[0] == 1


def test_untrained_masks_are_left_out_and_the_next_token_is_drafted_where_it_pays() -> None:
    assert of(UNTRAINED).best(8)[0] == 1
    assert saves(of(UNTRAINED))
    assert not saves(Round(costs(60.0, 0.5), costs(60.0, 0.3), [(0.85, *UNTRAINED)], 1))


def test_no_more_masks_than_rows_pay() -> None:
    many, few = of(TRAINED).best(8)[0], of(TRAINED, verifier_row=12.0).best(8)[0]
    assert 1 <= few < many


def test_tokens_that_have_to_be_caught_up_with_count() -> None:
    assert not saves(of(TRAINED, unread=2000))


def test_before_any_pass_all_masks_are_drafted() -> None:
    assert Round(PassCosts(), PassCosts(), [(0.66,) * 6], 1).best(6) == (6, float("inf"))


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
        flat.saw_pass(8, masked_ms, masks=7)
    ahead = Ahead(flat, HELD)
    assert (ahead.best(1, [], 7)[1] > 0) is (ahead.token_ms < 1.5) is reads_masks
    assert ahead.best(1, [0.8] * 4, 7)[0] == 4


def test_before_any_pass_all_is_read() -> None:
    assert Ahead(PassCosts(), HELD).best(1, [0.5, 0.5], 3) == (2, 3)


def test_masks_that_seemed_not_to_pay_are_looked_at_for_a_small_part_of_the_time() -> None:
    shut = costs(20.0, 0.1)
    for _ in range(90):
        shut.saw_pass(8, 400.0, masks=7)
    rounds = [Ahead(shut, HELD).best(1, [], 7)[1] for _ in range(2000)]
    looks = sum(masks > 0 for masks in rounds)
    assert 0 < looks * shut.ms(8, 7) <= sum(20.0 for masks in rounds) / 50
    while not Ahead(shut, HELD).best(1, [], 7)[1]:
        pass
    for _ in range(90):
        shut.saw_pass(8, 21.0, masks=7)
    assert all(Ahead(shut, HELD).best(1, [], 7)[1] for _ in range(9))
