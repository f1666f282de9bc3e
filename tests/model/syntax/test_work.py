"""The searches end by work and not by time: the same fills on a busy machine, and whatever was asked before."""

from threading import Event, Thread

import numpy as np
import pytest
from tests.benchmarks.constraint.synthetic import Case, cut_case

from lacuna_model.core import work
from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint

from .conftest import Samples, SmallTokens
from .drive import certain, fill, noisy, require

NAMES = ("cpp", "php", "python", "tsx", "yaml")


def outcome(case: Case, tokens: SmallTokens) -> tuple[object, int]:
    """The verdict of a fill with a noisy model, and the work that it took."""
    before = work.spent()
    constraint = SyntaxConstraint(case.text, case.regions, case.language, tokens, strict=True)
    model = noisy(case.truths, tokens, np.random.default_rng(3), 0.4)
    verdict = fill(constraint, model, [region.max_tokens for region in case.regions], tokens.eog_id, max_steps=60)
    return verdict, work.spent() - before


@pytest.mark.parametrize("name", NAMES)
def test_a_request_takes_the_same_work_on_a_busy_machine(samples: Samples, tokens: SmallTokens, name: str) -> None:
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


@pytest.mark.parametrize("indent", ["", "        "])
def test_a_gap_in_a_file_that_is_broken_above_it_takes_little_work(tokens: SmallTokens, indent: str) -> None:
    """Where a bracket is lost, no fill below it makes the file valid, and the search has to find that out."""
    method = "    def f%d(self, a):\n        if a in self.b:\n            c = [d for d in a]\n        return g(a)\n\n"
    above = "class A:\n" + "".join(method % number for number in range(8)) + "    def h(self):\n        x = f(self, y\n"
    above += "".join(method % number for number in range(9, 30)) + "    def i(self):\n        a = 1\n" + indent
    below = "\n        return a\n\n" + "".join(method % number for number in range(31, 50))
    place, before = len(above), work.spent()
    region = Region(place, place, max_tokens=40, max_lines=1, single_line=True)
    constraint = SyntaxConstraint((above + below).encode(), [region], require("python"), tokens)
    line = "        b = a".removeprefix(indent)
    ids = tokens.encode(line)
    verdict = fill(constraint, certain([ids], tokens.eog_id), [40], tokens.eog_id)
    assert verdict.fills == (line,)
    assert work.spent() - before < 2e9
