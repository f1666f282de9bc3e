"""What the synthetic models know of the true fill."""

import numpy as np
import pytest
from tests.benchmarks.constraint.synthetic import UNSURE, SyntheticModel
from tests.model import tiny

from lacuna_model.core.context import Gap
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.tokens.tokenizer import Tokenizer

TOKENS = Tokenizer(tiny.vocabulary())
TRUTH = tuple(TOKENS.encode("def add(first, second):\n    return first + second\n"))


def read(canvas: Canvas, *, noise: float = 0.0, foresight: int = 0) -> Marginals:
    model = SyntheticModel([TRUTH], TOKENS, np.random.default_rng(0), noise=noise, foresight=foresight)
    marginals = model.read([canvas])[0]
    assert marginals is not None
    return marginals


def opened(size: int = 12) -> Canvas:
    canvas = Canvas(Gap(0), size, len(TRUTH))
    canvas.open_block()
    return canvas


@pytest.mark.parametrize("foresight", [1, 2, 5])
def test_tokens_beyond_the_foresight_are_unknown(foresight: int) -> None:
    canvas = opened()
    canvas.slots[:2] = TRUTH[:2]
    marginals = read(canvas, foresight=foresight)
    reach = 2 + foresight
    assert marginals.ids[:reach, 0].tolist() == list(TRUTH[:reach])
    best = np.exp(marginals.logp[:, 0])
    assert best[reach:] == pytest.approx(UNSURE, abs=1e-4)
    assert (best[:reach] >= 0.4).all()
    behind = [list(slot) for slot in marginals.ids[reach:]]
    assert all(slot.index(token) > 0 for slot, token in zip(behind, TRUTH[reach:12], strict=True))


def test_a_foresight_of_zero_sets_no_limit() -> None:
    marginals = read(opened())
    assert marginals.ids[:, 0].tolist() == list(TRUTH[:12])
    assert (np.exp(marginals.logp[:, 0]) >= 0.4).all()


def test_noise_changes_tokens_within_the_foresight() -> None:
    marginals = read(opened(), noise=0.9, foresight=12)
    assert (marginals.ids[:, 0] != TRUTH[:12]).any()
