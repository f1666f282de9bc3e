"""ast-grep runs in a process that can be killed. If it never finishes with a text, only this text is refused."""

from pathlib import Path

import pytest

from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax import language_for
from lacuna_server.refactor.places.matcher import Matcher
from lacuna_server.refactor.places.matching import Question
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.rewriting.refactoring import Refactoring, by_structure, by_syntax, places

ENDLESS = "<a {{b:>c:d(e f)\n"


def source(path: str, text: str) -> Source:
    language = language_for(path)
    assert language is not None
    return Source(path, text, language)


def test_a_text_that_never_finishes_is_refused_and_the_next_question_is_answered() -> None:
    matcher = Matcher()
    try:
        with pytest.raises(UnparsableError):
            matcher.ask(Question(ENDLESS, "f($A)", "tsx"))
        (found,) = matcher.ask(Question("f(1)\n", "f($A)", "tsx")).matches
        assert found == ((0, 4), {"A": (2, 3)})
    finally:
        matcher.close()


def test_a_pattern_that_never_finishes_is_refused() -> None:
    matcher = Matcher()
    try:
        with pytest.raises(UnparsableError):
            matcher.ask(Question("f(1)\n", ENDLESS, "tsx"))
    finally:
        matcher.close()


@pytest.mark.parametrize(
    "refactoring",
    [
        by_structure("old($A)", "fresh($A)"),
        by_syntax('(call_expression function: (identifier) @f (#eq? @f "old")) @place', "fresh()", "tsx"),
    ],
    ids=["pattern", "query"],
)
def test_a_refactor_skips_a_file_that_never_finishes_and_reports_it(refactoring: Refactoring) -> None:
    good, bad = source("a.tsx", "old(1);\n"), source("hang.tsx", "old(2);\n" + ENDLESS)
    found, left_out = places(refactoring, [bad, good])
    assert [one.path for one, _ in found] == ["a.tsx"]
    assert len(left_out) == 1
    assert left_out[0].startswith("hang.tsx")


def test_closing_the_matcher_ends_its_process(tmp_path: Path) -> None:
    matcher = Matcher()
    matcher.ask(Question("f(1)\n", "f($A)", "tsx"))
    process = matcher._process
    assert process is not None
    matcher.close()
    assert process.returncode is not None
