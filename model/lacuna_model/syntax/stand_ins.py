"""Stand-ins: the shortest fills that make a text valid as long as its gaps are not filled.

Gaps far apart are filled one group after the other. While those to come are empty, the text around the others is
broken, which makes their checks slow and leaves it open whether all gaps can be filled in the end.
"""

from collections.abc import Sequence

from lacuna_model.core.constraint import GapView, TokenText
from lacuna_model.core.params import Region
from lacuna_model.languages.language import Language
from lacuna_model.syntax.witness import SyntaxConstraint


def stand_ins(
    text: bytes, regions: Sequence[Region], language: Language, tokens: TokenText, deadline: float | None = None
) -> list[str]:
    """A fill for each region with which the text is valid; empty ones for those that none is found for."""
    constraint = SyntaxConstraint(text, regions, language, tokens, deadline=deadline)
    return constraint.foresee([GapView((), (), budget=region.max_tokens) for region in regions])
