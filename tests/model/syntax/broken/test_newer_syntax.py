"""Fills beside syntax that is newer than the grammar: what the grammar cannot read is left out of what it checks."""

import pytest
from tests.model.syntax.cases import Case, load
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import certain, fill, require

from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint

FEW = 64
# Each of these files has a statement, a branch or a header that the grammar cannot read; the compilers can.
NEWER = load("newer_syntax")


@pytest.mark.parametrize("case", NEWER)
def test_a_fill_beside_newer_syntax_is_what_the_model_writes(tokens: SmallTokens, case: Case) -> None:
    (wanted,) = case.takes
    in_line = "\n" not in wanted
    region = Region(case.place, case.place, max_tokens=FEW, max_lines=1 if in_line else None, single_line=in_line)
    constraint = SyntaxConstraint(case.text, [region], require(case.language), tokens)
    model = certain([tokens.encode(wanted)], tokens.eog_id)
    assert fill(constraint, model, [FEW], tokens.eog_id).fills == (wanted,)
