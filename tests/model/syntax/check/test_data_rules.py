"""Roots, raw characters, tags and anchors: fills that a grammar of data accepts and a reader of the data refuses."""

import pytest
from tests.model.syntax.cases import Case, load
from tests.model.syntax.drive import require

from lacuna_model.syntax.check.document import Document

# In files that a strict parser refuses anyway.
WRONG = load("data_and_tags")


def document(name: str, before: str, after: str) -> Document:
    return Document((before + after).encode(), [(len(before), len(before))], require(name))


@pytest.mark.parametrize("case", WRONG)
def test_an_invalid_fill_is_refused_and_a_valid_one_is_not(case: Case) -> None:
    for fills, valid in ((case.refuses, False), (case.takes, True)):
        for text in fills:
            assert document(case.language, case.before, case.after).check([text.encode()]).valid == valid
            assert document(case.language, case.before, case.after).check_fresh([text.encode()]).valid == valid


@pytest.mark.parametrize(
    ("name", "before", "after", "text"),
    [
        ("tsx", "const a = <b>c</d>;\nconst e = ", ";\n", "1"),
        ("html", "<div><b>a</div>\n<p>", "</p>\n", "c"),
        ("html", "<div><b>long\n", "\n</div>\n", "c"),
        ("html", "<ul><li>a", "</ul>\n", "<li>d"),
        ("html", "<input>", "<hr/>\n", "<IMG>"),
        ("json", '{"a": 1}\n{"b": 2}\n', "\n", " "),
    ],
)
def test_an_error_that_the_text_has_already_may_stay(name: str, before: str, after: str, text: str) -> None:
    assert document(name, before, after).check([text.encode()]).valid
    assert document(name, before, after).check_fresh([text.encode()]).valid
