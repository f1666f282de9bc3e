"""True fills of real problems, proposed token by token, with a suffix that leaves little freedom.

The budget of a search is too small for some of them, so a few may be lost.
"""

from pathlib import Path

import pytest
from tests.benchmarks.tasks.dataset import load_problems

from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint

from .conftest import SmallTokens
from .drive import certain, fill, require

PROBLEMS = Path(__file__).parents[4] / "shared/data/humaneval_infill_dev.jsonl.gz"


@pytest.mark.skipif(not PROBLEMS.exists(), reason="the evaluation data is not here")
@pytest.mark.parametrize(("kind", "most_lost"), [("multi", 9), ("span", 4)])
def test_few_true_fills_are_lost(tokens: SmallTokens, kind: str, most_lost: int) -> None:
    problems = [one for one in load_problems(PROBLEMS) if one.kind == kind][:30]
    lost = []
    for problem in problems:
        ids, place = list(tokens.encode(problem.canonical_solution)), len(problem.prompt.encode())
        region = Region(place, place, max_tokens=len(ids) + 32)
        constraint = SyntaxConstraint(problem.document("").encode(), [region], require("python"), tokens)
        verdict = fill(constraint, certain([ids], tokens.eog_id), [region.max_tokens], tokens.eog_id)
        if verdict.fills != (problem.canonical_solution,):
            lost.append(problem.task_id)
    assert len(problems) == 30
    assert len(lost) <= most_lost, lost
