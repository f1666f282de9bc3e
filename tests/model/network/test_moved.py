"""Keys whose tokens have been moved since they were read."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from lacuna_kernels import reference
from lacuna_model.network.arena import MovedKeys

DISTANCES = st.lists(st.sampled_from([0, 0, 3, -2, 90]), min_size=1, max_size=40)


@given(DISTANCES)
def test_runs_give_each_key_its_distance(by: list[int]) -> None:
    moved = MovedKeys(np.array(by))
    assert moved.distances[0] == 0
    assert set(moved.distances.tolist()) == {0, *by}
    found: list[int] = []
    for end, place in moved.runs.tolist():
        assert end > len(found)
        found += [int(moved.distances[place])] * (end - len(found))
    assert found == by


@given(DISTANCES.filter(any))
def test_keys_that_are_rotated_are_those_of_where_their_tokens_are(by: list[int]) -> None:
    angles = torch.outer(torch.arange(200.0, dtype=torch.float64), 0.5 ** torch.arange(4)).repeat(1, 2).float()
    cos, sin = angles.cos(), angles.sin()
    plain = torch.randn((1, 2, len(by), 8), generator=torch.Generator().manual_seed(1))
    positions, distances = torch.arange(len(by)) + 5, torch.tensor(by)
    keys = reference.rotary(plain, cos[positions], sin[positions])
    given_keys = keys.clone()
    rotation = MovedKeys(np.array(by)).rotation(cos, sin)
    assert rotation is not None
    found = rotation(keys)
    there = reference.rotary(plain, cos[(positions + distances) % 200], sin[(positions + distances) % 200])
    reachable = positions + distances >= 0
    torch.testing.assert_close(found[:, :, reachable], there[:, :, reachable], atol=1e-4, rtol=1e-4)
    assert torch.equal(keys, given_keys)
