import math

import numpy as np
import pytest
from tests.model.scripted import SECOND, sure

from lacuna_model.core.constraint import fill_text, fill_tokens
from lacuna_model.core.context import Gap
from lacuna_model.core.params import Region
from lacuna_model.core.stopping import LineLimit, StopRule
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.decode.confidence import UNKNOWN_LOG_PROB
from lacuna_model.tokens.tokenizer import Tokenizer

EOG = 2


def opened(block_size: int = 4, budget: int = 10, **options: object) -> Canvas:
    canvas = Canvas(Gap(5), block_size, budget, **options)
    canvas.open_block()
    return canvas


def end(canvas: Canvas, tokenizer: Tokenizer) -> None:
    """Close the canvas where its rule ends the fill."""
    for fill in canvas.ends(tokenizer)[:1]:
        canvas.end_with(fill)


def test_blocks_follow_each_other_until_the_budget_is_used_up() -> None:
    canvas = opened(block_size=4, budget=10)
    sizes = []
    while not canvas.closed:
        sizes.append((len(canvas.slots), canvas.budget))
        for slot in range(len(canvas.slots)):
            canvas.commit(slot, 10 + slot, EOG)
        canvas.open_block()
    assert sizes == [(4, 6), (4, 2), (2, 0)]
    assert canvas.tokens() == [10, 11, 12, 13, 10, 11, 12, 13, 10, 11]


def test_the_frontier_is_the_first_open_slot() -> None:
    canvas = opened()
    assert canvas.frontier == 0
    canvas.commit(1, 11, EOG)
    assert (canvas.frontier, canvas.tokens()) == (0, [])
    canvas.commit(0, 10, EOG)
    assert (canvas.frontier, canvas.tokens()) == (2, [10, 11])
    canvas.commit(3, 13, EOG)
    canvas.commit(2, 12, EOG)
    assert (canvas.frontier, canvas.is_full, canvas.closed) == (4, True, False)


def test_end_of_gap_cuts_the_block_and_closes_the_canvas_once_all_slots_before_it_are_filled() -> None:
    canvas = opened()
    canvas.commit(3, 13, EOG)
    canvas.commit(2, EOG, EOG)
    assert (canvas.slots, canvas.closed) == ([None, None, EOG], False)
    canvas.commit(0, 10, EOG)
    canvas.commit(1, 11, EOG)
    assert (canvas.slots, canvas.closed, canvas.budget) == ([10, 11], True, 0)
    assert canvas.tokens() == [10, 11]


def test_a_nearer_end_of_gap_cuts_again() -> None:
    canvas = opened()
    canvas.commit(2, EOG, EOG)
    canvas.commit(0, EOG, EOG)
    assert (canvas.slots, canvas.closed, canvas.tokens()) == ([], True, [])


def test_the_log_probability_of_a_token_is_kept() -> None:
    canvas, seen = opened(), sure([7, 8, 9, 10])
    canvas.remember(1, 8, seen)
    canvas.remember(2, 11, seen)  # a token that the model did not offer
    assert canvas.log_probs == {1: float(seen.logp[1, 0]), 2: UNKNOWN_LOG_PROB}


def test_a_view_shows_what_a_constraint_needs() -> None:
    canvas = opened(budget=6)
    canvas.commit(1, EOG, EOG)
    view = canvas.view(sure([7, EOG]))
    assert (view.done, view.slots, view.budget, view.closed, view.prefix) == ((), (None, EOG), 2, False, b"")
    assert view.ids[:, 0].tolist() == [7, EOG]
    assert canvas.view(None).ids.shape == (0, 0)
    canvas.commit(0, 7, EOG)
    assert fill_tokens(canvas.view(None), EOG) == [7]


@pytest.mark.parametrize(
    ("text", "closed", "kept"),
    [
        ("    y = x\n    return y\n", False, "    y = x\n"),
        ("    y = x\n    return y", False, None),
        ("    y = x\n    return y", True, "    y = x\n"),
        ("    y = x\nprint(", False, "    y = x\n"),
        ("    y = x\n", True, None),
    ],
    ids=["next-line", "unfinished", "last", "leaves-block", "nothing-to-cut"],
)
def test_a_fill_ends_where_it_repeats_the_suffix(
    tokenizer: Tokenizer, text: str, closed: bool, kept: str | None
) -> None:
    canvas = opened(100, 200, stop=StopRule.between("def f(x):\n", "    return y\n"))
    for slot, token in enumerate(tokenizer.encode(text)):
        canvas.commit(slot, token, EOG)
    canvas.closed = closed
    end(canvas, tokenizer)
    assert tokenizer.decode(canvas.tokens()) == (text if kept is None else kept)
    assert canvas.closed is (closed or kept is not None)


def test_a_repeat_is_found_after_the_healed_text(tokenizer: Tokenizer) -> None:
    canvas = Canvas(Gap(5, prefix=b"    "), 100, 100, stop=StopRule.between("if x:\n    ", "\n    y = 1\n"))
    canvas.open_block()
    for slot, token in enumerate(tokenizer.encode("    x = 1\n    y = 1\n")):
        canvas.commit(slot, token, EOG)
    end(canvas, tokenizer)
    assert tokenizer.decode(canvas.tokens()) == "    x = 1"
    assert canvas.closed


def limited(tokenizer: Tokenizer, text: str, after: str, region: Region) -> Canvas:
    """A canvas that holds a text, for a region with a limit of lines."""
    rule = StopRule.between("def f(x):\n    ", after, None, LineLimit.of(region, after.encode()))
    canvas = opened(100, 200, stop=rule)
    for slot, token in enumerate(tokenizer.encode(text)):
        canvas.commit(slot, token, EOG)
    return canvas


def test_a_fill_ends_with_the_last_line_that_its_region_allows(tokenizer: Tokenizer) -> None:
    for region, after, kept in (
        (Region(0, 0, single_line=True), "\n    return y\n", "y = x"),
        (Region(0, 0, max_lines=2), "\n    return y\n", "y = x\n    z = y"),
        (Region(0, 0, max_lines=2), "    return y\n", "y = x\n    z = y\n"),
    ):
        canvas = limited(tokenizer, "y = x\n    z = y\n    a = 1", after, region)
        end(canvas, tokenizer)
        assert tokenizer.decode(canvas.tokens()) == kept
        assert canvas.closed


def test_a_fill_may_end_within_the_token_that_comes(tokenizer: Tokenizer) -> None:
    text, coming = "Hello", tokenizer.encode('!")\n')
    canvas = opened(100, 200, stop=StopRule.between('print("', '")\n'))
    for slot, token in enumerate(tokenizer.encode(text)):
        canvas.commit(slot, token, EOG)
    assert canvas.ends(tokenizer) == []
    for more in (coming, [*tokenizer.encode('!")'), EOG]):
        assert [tokenizer.decode(fill) for fill in canvas.ends(tokenizer, more)] == ["Hello!"]
    assert canvas.ends(tokenizer, tokenizer.encode('!")')) == []
    assert canvas.ends(tokenizer, [EOG]) == []


def test_the_first_places_where_a_fill_may_end_and_the_last_are_named(tokenizer: Tokenizer) -> None:
    canvas = limited(tokenizer, "z\n" * 6 + "a", "z\n", Region(0, 0, max_lines=5))
    assert [tokenizer.decode(fill) for fill in canvas.ends(tokenizer)] == ["", "z\n", "z\n" * 5]


def test_no_repeat_ends_a_fill_before_its_least_length(tokenizer: Tokenizer) -> None:
    text = "    y = x\n    return y\n"
    canvas = opened(100, 100, min_tokens=40, stop=StopRule.between("def f(x):\n", "    return y\n"))
    for slot, token in enumerate(tokenizer.encode(text)):
        canvas.commit(slot, token, EOG)
    end(canvas, tokenizer)
    assert not canvas.closed
    assert tokenizer.decode(canvas.tokens()) == text


@pytest.mark.parametrize(
    ("text", "closed", "truncate", "expected"),
    [
        ("x = 1\ny =", False, True, "x = 1\n"),
        ("x = 1\ny =", True, True, "x = 1\ny ="),
        ("x = 1\ny =", False, False, "x = 1\ny ="),
        ("x =", False, True, ""),
    ],
)
def test_only_an_open_fill_is_truncated_to_complete_lines(
    tokenizer: Tokenizer, text: str, closed: bool, truncate: bool, expected: str
) -> None:
    canvas = opened(100, 100)
    for slot, token in enumerate(tokenizer.encode(text)):
        canvas.commit(slot, token, EOG)
    canvas.closed = closed
    assert fill_text(canvas.view(None), tokenizer, truncate=truncate) == expected


def test_half_a_character_at_the_end_is_dropped(tokenizer: Tokenizer) -> None:
    canvas = opened(8, 8)
    for slot, token in enumerate(tokenizer.encode("x\U0001f600")[:3]):
        canvas.commit(slot, token, EOG)
    assert fill_text(canvas.view(None), tokenizer, truncate=False) == "x"


def test_a_token_after_an_open_slot_is_not_masked_again() -> None:
    canvas = opened()
    canvas.commit(3, 13, EOG)
    canvas.commit(0, 10, EOG)
    canvas.remask(0)
    assert canvas.slots == [None, None, None, 13]


def test_the_second_best_token_is_kept_unless_the_constraint_chose_the_token() -> None:
    canvas = opened(block_size=2, budget=4)
    canvas.remember(1, 11, sure([10, 11]))
    canvas.slots = [10, 11]
    canvas.open_block()
    canvas.remember(0, 12, sure([12, 13]))
    behind = pytest.approx(np.log(0.95 / 0.04))
    assert canvas.rivals == {1: (behind, SECOND), 2: (behind, SECOND)}
    canvas.remember(0, 99, sure([12, 13]))
    assert canvas.rivals.keys() == {1}


def test_the_given_first_tokens_of_a_canvas_are_due_block_by_block() -> None:
    canvas = opened(block_size=2, budget=5, begin=(10, 11, 12))
    assert canvas.begun == (10, 11)
    canvas.commit(0, 10, EOG)
    assert canvas.begun == (11,)
    canvas.commit(1, 11, EOG)
    assert canvas.begun == ()
    canvas.open_block()
    assert canvas.begun == (12,)


def test_a_slot_that_no_pass_has_reached_may_be_filled_by_the_constraint() -> None:
    canvas = opened()
    canvas.slots[0] = 5
    seen = Marginals(np.array([[5, 6], [7, 8]]), np.log([[0.9, 0.1], [0.8, 0.2]]).astype(np.float32), np.zeros(2))
    canvas.remember(1, 7, seen)
    canvas.remember(3, 9, seen)
    assert canvas.log_probs[1] == pytest.approx(math.log(0.8))
    assert canvas.log_probs[3] == UNKNOWN_LOG_PROB
    assert 3 not in canvas.rivals
