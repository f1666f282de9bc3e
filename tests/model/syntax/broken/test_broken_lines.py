"""Fills of one line in files with errors elsewhere: above or below, from a merge, or in unfinished code."""

import numpy as np
import pytest
from tests.model.syntax.cases import Case, load
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import certain, fill, noisy, require

from lacuna_model.core.params import Region
from lacuna_model.syntax import Language, SyntaxConstraint
from lacuna_model.syntax.broken.tolerant import tolerant
from lacuna_model.syntax.check.error_set import tree_faults
from lacuna_model.syntax.check.indentation import indentation_faults

MARK = "<|>"
# Files with errors outside of the line with the gap, and the text that is typed in the line.
BROKEN = load("broken_lines")


def split(marked: str) -> tuple[bytes, int]:
    return marked.replace(MARK, "").encode(), marked.encode().index(MARK.encode())


@pytest.mark.parametrize("case", BROKEN)
def test_a_line_is_not_refused_for_errors_that_the_file_had_before(tokens: SmallTokens, case: Case) -> None:
    name, text, place, (typed,) = case.language, case.text, case.place, case.takes
    region = Region(place, place, max_tokens=32, max_lines=1, single_line=True)
    constraint = SyntaxConstraint(text, [region], require(name), tokens)
    verdict = fill(constraint, certain([tokens.encode(typed)], tokens.eog_id), [32], tokens.eog_id)
    assert verdict.fills is not None
    assert verdict.fills[0].startswith(typed)


def errors(text: bytes, language: Language) -> int:
    tree = language.parser().parse(text)
    return len(tree_faults(tree)) + len(indentation_faults(tree, text) if language.columns else ())


@pytest.mark.parametrize("case", BROKEN)
def test_a_fill_leaves_no_more_errors_than_the_neutral_or_the_right_fill(tokens: SmallTokens, case: Case) -> None:
    name, text, place, (typed,) = case.language, case.text, case.place, case.takes
    demand = tolerant(text, (place, place), require(name))
    region = Region(place, place, max_tokens=16, max_lines=1, single_line=True)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        model = noisy([tokens.encode(typed)], tokens, rng, 1.0)
        verdict = fill(SyntaxConstraint(text, [region], require(name), tokens), model, [16], tokens.eog_id, rng=rng)
        if verdict.fills is None:
            continue
        delivered = verdict.fills[0].encode()
        neutral = demand.neutral if demand is not None else b""
        most = max(errors(text[:place] + one + text[place:], require(name)) for one in (neutral, b"", typed.encode()))
        assert errors(text[:place] + delivered + text[place:], require(name)) <= most, delivered


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("python", "x = f(<|>\ny = 2\n"),
        ("c", "int f(void) <|>\n  return 1;\n}\n"),
        ("javascript", "if (a <|>\n  b();\n}\n"),
        ("lua", "if a <|>\n  b()\nend\n"),
        ("python", "try:\n    a()\n<|>\n    b()\n"),
        ("json", '{"a": 1 <|>\n"b": 2}\n'),
        ("php", "<?php\nfunction f() {\n    return 1<|>    private $a = 2;\n}\n"),
    ],
)
def test_a_file_that_the_line_may_repair_is_not_broken(name: str, marked: str) -> None:
    text, place = split(marked)
    demand = tolerant(text, (place, place), require(name))
    assert demand is None or demand.document is None
