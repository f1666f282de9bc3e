import pytest
import torch

from lacuna_model.ending import END_SHARE, RULED_OUT, best_tokens, end_odds, with_ends


def test_the_end_is_best_where_it_is_likely_enough() -> None:
    less, more = END_SHARE - 0.1, END_SHARE + 0.1
    rows = torch.tensor([[less, 1 - less], [more, 1 - more], [0.9, 0.1]]).log()
    assert best_tokens(rows, 0) == [1, 0, 0]
    assert best_tokens(rows, 1) == [1, 1, 0]


def test_ends_are_put_in_and_the_rest_is_shared() -> None:
    rows = with_ends(torch.tensor([[5.0, 1.0, 1.0], [0.0, 2.0, 0.0]]), 0, torch.tensor([0.25, 0.5]).log())
    assert rows.exp().flatten().tolist() == pytest.approx(
        [0.25, 0.375, 0.375, 0.5, 0.5 * 0.8808, 0.5 * 0.1192], abs=1e-4
    )


def test_odds_grow_with_what_speaks_for_an_end_and_what_is_ruled_out_stays_so() -> None:
    canvas, base = torch.tensor([-1.0, -1.0, -4.0, RULED_OUT]), torch.tensor([-0.1, -6.0, -0.1, -0.1])
    likely, unlikely, doubted, impossible = end_odds((2.0, 0.5, 1.0), canvas, base).exp().tolist()
    assert likely > doubted > unlikely > 0
    assert impossible == 0
    assert end_odds((0.0, 1.0), torch.tensor(-200.0)) == end_odds((0.0, 1.0), torch.tensor(-12.0))
