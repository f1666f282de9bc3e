from pathlib import Path

import pytest
from tests.benchmarks.constraint import unclean
from tests.model import tiny

from lacuna_model.syntax import LANGUAGES, language_for
from lacuna_model.tokens.tokenizer import Tokenizer

FOLDER = Path(__file__).parents[3] / "data" / "syntax"
FILES = sorted(FOLDER.iterdir())
TOKENS = Tokenizer(tiny.vocabulary())
PYTHON = language_for(name="python")
assert PYTHON is not None


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_suggestions_in_files_with_errors_add_no_error(language: unclean.Language) -> None:
    texts = unclean.sample(FILES, 1, seed=0)[language.name]
    cursors = 10 if language.name == "python" else 5  # five have one in each state
    answers = [unclean.answer(one, TOKENS, 0.0, 0) for one in unclean.cases(texts, language, TOKENS, cursors, seed=3)]
    assert answers
    (own, everything) = unclean.rows(answers)
    assert own.cursors == everything.cursors == len(answers)
    if language.name == "python":
        assert everything.share <= 0.1, [one for one in answers if one.reason]
    assert not everything.adding_errors, [one for one in answers if one.adds_error]
