"""What the constraint does with a simulated model: in files that parse, and in those that do not."""

from pathlib import Path

import pytest
from tests.benchmarks.constraint.measure import cut_gaps, filled, rows, sample
from tests.benchmarks.constraint.unclean import cut_cursors
from tests.model import tiny

from lacuna_model.syntax import LANGUAGES, Language
from lacuna_model.tokenizer import Tokenizer

FOLDER = Path(__file__).parents[3] / "data" / "syntax"
FILES = sorted(FOLDER.iterdir())
TOKENS = Tokenizer(tiny.vocabulary())


def test_the_constraint_never_delivers_a_text_that_does_not_parse() -> None:
    texts = sample([FOLDER / "ledger.py"], 1, seed=0)
    cases = list(cut_gaps(texts, TOKENS, gaps=(1, 2), slots=(4,), count=6, seed=0))
    assert {len(case.truths) for case in cases} == {1, 2}
    (noisy,) = rows([filled(case, TOKENS, [0, i], noise=0.15, strict=True) for i, case in enumerate(cases)])
    assert noisy["refused"] + noisy["delivered, parse"] == noisy["cases"] == len(cases)
    (true,) = rows([filled(case, TOKENS, [0], noise=0, foresight=1, strict=True) for case in cases])
    assert true["whole"] == true["gaps"] == sum(len(case.truths) for case in cases)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_suggestions_in_files_with_errors_add_no_error(language: Language) -> None:
    texts = sample(FILES, 1, seed=0)[language.name]
    cursors = 10 if language.name == "python" else 5  # five have one in each state
    cases = list(cut_cursors(texts, language, TOKENS, cursors, seed=3))
    found = [filled(case, TOKENS, [0, number], noise=0.0) for number, case in enumerate(cases)]
    (own,) = rows(found)
    assert own["cases"] == len(cases) > 0
    if language.name == "python":
        assert own["refused"] <= 0.1 * own["cases"], [one for one in found if one.reason]
    assert not own["adding errors"], [one for one in found if one.adds_error]
