"""The searches end by work and not by time: the same fills on a busy machine, and whatever was asked before."""

from threading import Event, Thread

import numpy as np
import pytest

from lacuna_model.core import work
from lacuna_model.evaluate.constraint.synthetic import Case, cut_case
from lacuna_model.syntax import SyntaxConstraint

from .conftest import Samples, SmallTokens
from .drive import fill, noisy

NAMES = ("bash", "cpp", "javascript", "kotlin", "php", "python", "ruby", "tsx", "yaml")


def outcome(case: Case, tokens: SmallTokens) -> tuple[object, int]:
    """The verdict of a fill with a noisy model, and the work that it took."""
    before = work.spent()
    constraint = SyntaxConstraint(case.text, case.regions, case.language, tokens, strict=True)
    model = noisy(case.truths, tokens, np.random.default_rng(3), 0.4)
    verdict = fill(constraint, model, [region.max_tokens for region in case.regions], tokens.eog_id, max_steps=60)
    return verdict, work.spent() - before


@pytest.mark.parametrize("name", NAMES)
def test_a_request_takes_the_same_work_again_on_a_busy_machine(
    samples: Samples, tokens: SmallTokens, name: str
) -> None:
    language, text = samples[name]
    rng = np.random.default_rng(5)
    case = cut_case(text, language, tokens, rng, gaps=2, slots=8, shape="tokens")
    assert case is not None
    first, stop = outcome(case, tokens), Event()

    def burn() -> None:
        while not stop.is_set():
            sum(range(1000))

    threads = [Thread(target=burn) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert outcome(case, tokens) == first
    finally:
        stop.set()
        for thread in threads:
            thread.join()
