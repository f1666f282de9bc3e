from collections.abc import Sequence

import numpy as np

from lacuna_model.core.constraint import Run
from lacuna_model.decode.sampling import drawn

KEY = (0, 5)


def read(count: int = 8) -> Run:
    """A run whose tokens are all 0, the best of twelve."""
    logits = np.random.default_rng(0).normal(size=(8, 12)).astype(np.float32)
    logp = -np.sort(-(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))), axis=1)
    return Run(np.tile(np.arange(12), (8, 1)), logp).part(0, count)


def one_by_one(seed: int, run: Run, temperature: float = 1.0, key: Sequence[int] = KEY) -> Run:
    """What is drawn where every pass reads one token."""
    parts = [drawn(run.part(place, place + 1), temperature, seed, key, place) for place in range(len(run))]
    return Run(np.concatenate([part.ids for part in parts]), np.concatenate([part.logp for part in parts]))


def test_the_given_first_tokens_of_a_fork_are_not_drawn() -> None:
    run = drawn(read(), 50.0, 1, KEY, 0, fixed=3)
    assert run.tokens[:3] == [0, 0, 0]
    assert run.tokens[3:] == drawn(read().part(3, 8), 50.0, 1, KEY, 3).tokens


def test_tokens_are_drawn_as_often_as_they_are_probable() -> None:
    best = np.mean([[token == 0 for token in one_by_one(seed, read()).tokens] for seed in range(-1000, 1000)], axis=0)
    probabilities = np.exp(read().logp)
    assert np.allclose(best, probabilities[:, 0] / probabilities.sum(axis=1), atol=0.05)
