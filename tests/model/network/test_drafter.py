"""A drafter continues hidden states; before it is trained, it predicts the state that it was given."""

import pytest
import torch
from tests.model import tiny_drafter

from lacuna_model.network.drafter import linears


def test_steps_keep_the_shape_of_the_states() -> None:
    drafter = tiny_drafter.random(seed=1)
    hidden = torch.randn(5, drafter.config.hidden_size)
    states = drafter.step(hidden, torch.tensor([3, 4, 5, 6, 7]))
    assert states.shape == hidden.shape
    assert drafter.logits(states).shape == (5, len(drafter.vocabulary))


def test_rows_do_not_depend_on_each_other() -> None:
    drafter = tiny_drafter.random(seed=2)
    hidden = torch.randn(4, drafter.config.hidden_size)
    tokens = torch.tensor([3, 9, 9, 4])
    together = drafter.step(hidden, tokens)
    for row in range(4):
        assert drafter.step(hidden[row : row + 1], tokens[row : row + 1])[0].tolist() == pytest.approx(
            together[row].tolist(), abs=1e-5
        )


def test_every_linear_has_its_shape() -> None:
    config = tiny_drafter.CONFIG
    assert linears(config)["join"] == (config.hidden_size, 2 * config.hidden_size)
    assert len(linears(config)) == 1 + 2 * config.num_blocks
