"""What the synthetic models write of the true fill."""

import numpy as np
import pytest
from tests.benchmarks.constraint.synthetic import SyntheticModel
from tests.model import tiny

from lacuna_model.core.constraint import Run
from lacuna_model.core.context import Gap
from lacuna_model.decode.fill import Fill
from lacuna_model.tokens.tokenizer import Tokenizer

TOKENS = Tokenizer(tiny.vocabulary())
TRUTH = TOKENS.encode("def add(first, second):\n    return first + second\n")


def read(fill: Fill, *, noise: float = 0.0, foresight: int = 0) -> Run:
    model = SyntheticModel([TRUTH], TOKENS, np.random.default_rng(0), noise=noise, foresight=foresight)
    (run,) = model.read([fill])
    assert run is not None
    return run


@pytest.mark.parametrize("foresight", [1, 2, 5])
def test_no_more_tokens_than_the_foresight_are_written_at_once(foresight: int) -> None:
    run = read(Fill(Gap(0), 12, tokens=TRUTH[:2]), foresight=foresight)
    assert run.tokens == TRUTH[2 : 2 + foresight]
    assert (np.exp(run.logp[:, 0]) >= 0.4).all()


def test_a_foresight_of_zero_sets_no_limit() -> None:
    assert read(Fill(Gap(0), 12)).tokens == TRUTH[:12]
    assert read(Fill(Gap(0), 99)).tokens == [*TRUTH, TOKENS.eog_id]


def test_noise_changes_tokens_and_leaves_the_true_ones_below_them() -> None:
    run = read(Fill(Gap(0), 12), noise=0.9)
    assert run.tokens != TRUTH[:12]
    assert all(token in ids for token, ids in zip(TRUTH, run.ids.tolist(), strict=False))
