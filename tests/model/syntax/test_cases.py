"""Every case of the data files, through the constraint's own protocol: a model proposes a fill, token by token."""

import pytest

from .cases import Case, every
from .conftest import SmallTokens
from .drive import delivered, writes

DELIVERED = [case for case in every() if not case.values[0].judged_only]  # type: ignore[union-attr]
SPARE = 6  # tokens beyond those of the fill that is proposed


def proposed(case: Case, text: str, tokens: SmallTokens) -> str | None:
    """The fill that is delivered if a model is certain of a text."""
    room = len(tokens.encode(text)) + SPARE
    return delivered(case.language, case.before, case.after, writes(text, tokens), tokens, room=room)


@pytest.mark.parametrize("case", DELIVERED)
def test_a_valid_fill_is_delivered(case: Case, tokens: SmallTokens) -> None:
    for text in case.takes:
        assert proposed(case, text, tokens) == text


@pytest.mark.parametrize("case", DELIVERED)
def test_an_invalid_fill_is_never_delivered(case: Case, tokens: SmallTokens) -> None:
    for text in case.refuses:
        assert proposed(case, text, tokens) != text
