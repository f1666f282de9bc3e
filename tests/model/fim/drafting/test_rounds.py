"""How many masks yield most tokens a millisecond, by given costs."""

import math

import pytest

from lacuna_model.fim.drafting.costs import PassCosts
from lacuna_model.fim.drafting.rounds import Ahead, Round

# How often the slots of mask rows hold after a good training, and after none.
TRAINED, UNTRAINED = (0.75, 0.7, 0.65, 0.6, 0.6, 0.6, 0.6), (0.02,) * 7


def costs(ms: float, ms_a_row: float) -> PassCosts:
    """The costs of a model: passes of one row, and of each further one."""
    return reads(**{f"rows_{rows}": ms + (rows - 1) * ms_a_row for rows in (1, 64)})


def reads(**ms_by_rows: float) -> PassCosts:
    """The costs of a model, as ``rows_8=50.0``."""
    found = PassCosts()
    for name, ms in ms_by_rows.items():
        found.saw_pass(int(name.removeprefix("rows_")), ms)
    return found


def of(masked: tuple[float, ...], *, unread: int = 1, verifier_row: float = 0.5, row: float = 0.3) -> Round:
    return Round(costs(60.0, verifier_row), costs(15.0, row), [(0.85, *masked)], unread)


def test_trained_masks_draft_as_far_as_their_rows_pay() -> None:
    many = of(TRAINED).best(8)[0]
    assert many > 3
    assert 1 <= of(TRAINED, verifier_row=12.0).best(8)[0] < many
    assert of(TRAINED, row=60.0).best(8)[0] == 1
    assert of(TRAINED, unread=2000).best(8)[1] <= 0  # tokens that have to be caught up with count


def test_untrained_masks_are_left_out_and_the_next_token_is_drafted_where_it_pays() -> None:
    most, saved = of(UNTRAINED).best(8)
    assert most == 1
    assert saved > 0
    assert Round(costs(60.0, 0.5), costs(60.0, 0.3), [(0.85, *UNTRAINED)], 1).best(8)[1] <= 0


def by_fours() -> PassCosts:
    """A machine that reads rows by fours."""
    return reads(**{f"rows_{rows}": ms for rows, ms in enumerate((23, 24, 25, 27, 50, 50, 50, 52, 76), 1)})


FLAT = costs(20.0, 0.1)  # reads eight rows at the cost of one
HELD = (0.84, 0.84, 0.84, 0.83, 0.81, 0.8, 0.79)


@pytest.mark.parametrize(
    ("passes", "held", "draft", "best"),
    [
        (by_fours(), HELD, [], (0, 3)),  # masks fill up the rows that cost little
        (FLAT, HELD, [], (0, 7)),
        (by_fours(), HELD, [0.84] * 3, (3, 0)),  # a likely draft, and no mask behind it that would cost a pass
        (by_fours(), HELD, [0.3] * 3, (0, 3)),  # a doubtful draft gives way to masks
        (by_fours(), (0.0,) * 7, [], (0, 0)),
        (FLAT, (0.0,) * 7, [], (0, 0)),
        (PassCosts(), HELD, [0.5] * 2, (2, 7)),  # before any pass all is read
    ],
)
def test_drafts_and_masks_are_read_where_they_pay(
    passes: PassCosts, held: tuple[float, ...], draft: list[float], best: tuple[int, int]
) -> None:
    assert Ahead(passes, held).best(1, draft, 7) == best


def test_behind_a_sure_draft_masks_pay_for_their_rows() -> None:
    slots, masks = Ahead(FLAT, HELD).best(1, [0.99] * 4, 7)
    assert slots == 4
    assert masks > 2
    assert Round(PassCosts(), PassCosts(), [(0.66,) * 6], 1).best(6) == (6, math.inf)  # before any pass


def test_masks_count_once_for_every_request_that_shares_the_pass() -> None:
    shared = by_fours()
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
