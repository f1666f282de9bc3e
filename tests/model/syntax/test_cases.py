"""Every case of the data files, through the constraint's own protocol: a model proposes a fill, token by token."""

import pytest

from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint

from .cases import Case, every
from .conftest import SmallTokens
from .drive import certain, fill, require

DELIVERED = [case for case in every() if not case.values[0].judged_only]  # type: ignore[union-attr]
SPARE = 6  # tokens beyond those of the fill that is proposed


def delivered(case: Case, proposed: str, tokens: SmallTokens) -> str | None:
    """The fill that is delivered if a model is certain of ``proposed``; None for ``no_valid_fill``."""
    ids = list(tokens.encode(proposed))
    region = Region(case.place, case.place, max_tokens=len(ids) + SPARE)
    constraint = SyntaxConstraint(case.text, [region], require(case.language), tokens)
    verdict = fill(constraint, certain([ids], tokens.eog_id), [region.max_tokens], tokens.eog_id)
    return verdict.fills[0] if verdict.fills is not None else None


@pytest.mark.parametrize("case", DELIVERED)
def test_a_valid_fill_is_delivered(case: Case, tokens: SmallTokens) -> None:
    for proposed in case.takes:
        assert delivered(case, proposed, tokens) == proposed


@pytest.mark.parametrize("case", DELIVERED)
def test_an_invalid_fill_is_never_delivered(case: Case, tokens: SmallTokens) -> None:
    for proposed in case.refuses:
        assert delivered(case, proposed, tokens) != proposed
