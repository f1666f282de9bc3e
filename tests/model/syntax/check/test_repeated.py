"""A fill that declares a name a second time is refused, unless the file has declared it twice before."""

import numpy as np
import pytest
from tests.model.syntax.cases import Case, load
from tests.model.syntax.drive import certain, fill, noisy, require

from lacuna_model.core.constraint import TokenText
from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint
from lacuna_model.syntax.check.document import Document

CASES = load("declared_twice")


def document(case: Case) -> Document:
    return Document(case.text, [(case.place, case.place)], require(case.language))


def between(name: str, before: str, after: str) -> Document:
    return document(Case("", name, before, after))


@pytest.mark.parametrize("case", CASES)
def test_a_name_is_not_declared_again(case: Case) -> None:
    for fills, valid in ((case.refuses, False), (case.takes, True)):
        for text in fills:
            assert document(case).check([text.encode()]).valid == valid
            assert document(case).check_fresh([text.encode()]).valid == valid


@pytest.mark.parametrize("case", CASES)
def test_a_name_that_was_declared_twice_before_may_stay(case: Case) -> None:
    for again in case.refuses:
        text = (case.before + again + case.after).encode()
        end = case.place + len(again.encode())
        for place in (case.place, end, len(text)):
            own = Document(text, [(place, place)], require(case.language))
            assert own.check([b""]).valid
            assert own.check_fresh([b""]).valid
        whole = Document(text, [(case.place, end)], require(case.language))
        assert whole.check_fresh([again.encode()]).valid


def test_declarations_outside_of_a_window_are_known() -> None:
    far = "\n".join(f"function unrelated{number}() {{\n  return 1;\n}}" for number in range(200))
    own = between("javascript", f"const first = 1;\n{far}\n", f"\n{far}\n")
    assert not own.check([b"const first = 2;"]).valid
    assert own.check([b"const second = 2;"]).valid


WANTED = {"c: a variable", "java: a variable", "cpp: a binding", "toml: a table", "json: a key"}
TWICE = [case for case in CASES if case.values[0].refuses]  # type: ignore[union-attr]


@pytest.mark.parametrize("case", [case for case in TWICE if case.values[0].name in WANTED])  # type: ignore[union-attr]
def test_a_model_that_proposes_a_declared_name_gets_another_one(case: Case, tokens: TokenText) -> None:
    region = Region(case.place, case.place, max_tokens=16, single_line=True)
    wanted = list(tokens.encode(case.refuses[0]))
    rng = np.random.default_rng(5)
    constraint = SyntaxConstraint(case.text, [region], require(case.language), tokens)
    verdict = fill(constraint, noisy([wanted], tokens, rng, 0.2), [region.max_tokens], tokens.eog_id)
    assert verdict.fills is not None
    assert document(case).check_fresh([verdict.fills[0].encode()]).valid


@pytest.mark.parametrize("case", TWICE)
def test_a_model_that_knows_only_a_declared_name_gets_no_other_one(case: Case, tokens: TokenText) -> None:
    region = Region(case.place, case.place, max_tokens=16, single_line=True)
    model = certain([list(tokens.encode(case.refuses[0]))], tokens.eog_id)
    verdict = fill(SyntaxConstraint(case.text, [region], require(case.language), tokens), model, [16], tokens.eog_id)
    assert verdict.fills is None or case.refuses[0].startswith(verdict.fills[0].rstrip(";"))
