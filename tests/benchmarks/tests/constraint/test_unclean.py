from pathlib import Path

import pytest
from tests.benchmarks.constraint import unclean
from tests.model import tiny

from lacuna_model.syntax import LANGUAGES, language_for, parses
from lacuna_model.tokens.tokenizer import Tokenizer

FOLDER = Path(__file__).parents[3] / "data" / "syntax"
FILES = sorted(FOLDER.iterdir())
TOKENS = Tokenizer(tiny.vocabulary())
PYTHON = language_for(name="python")
assert PYTHON is not None


def test_the_sample_has_every_language_and_is_reproducible() -> None:
    found = unclean.sample(FILES, 3, seed=1)
    assert set(found) == {language.name for language in LANGUAGES}
    assert unclean.sample(FILES, 3, seed=1) == found


def test_cursors_come_in_every_state_and_complete_a_line_of_the_file() -> None:
    text = (FOLDER / "ledger.py").read_bytes()
    found = list(unclean.cases([text], PYTHON, TOKENS, 10, seed=2))
    assert [one.state for one in found] == [*unclean.STATES, *unclean.STATES]
    assert [one.case.text for one in found] == [one.case.text for one in unclean.cases([text], PYTHON, TOKENS, 10, 2)]
    for one in found:
        place = one.case.regions[0].start
        head = one.case.text[:place].rpartition(b"\n")[2]
        assert head + TOKENS.decode_bytes(one.case.truths[0]) in text.split(b"\n")
        if one.state == "cut off":
            assert place == len(one.case.text)
        if one.state == "in a merge":
            assert b"<<<<<<< HEAD\n" in one.case.text
            assert not parses(one.case.text, PYTHON)


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
