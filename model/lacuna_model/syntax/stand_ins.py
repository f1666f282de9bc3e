"""Stand-ins: the shortest fills that make a text valid as long as its gaps are not filled.

Gaps that are far apart are filled in groups, one after the other. Without stand-ins in the later gaps the text around
the earlier ones is broken: their checks are slow, and it is unknown whether all gaps can be filled.
"""

from collections.abc import Sequence

from lacuna_model.core.constraint import GapView, TokenText
from lacuna_model.core.params import Region
from lacuna_model.languages.language import Language
from lacuna_model.syntax.witness import SyntaxConstraint


def stand_ins(
    text: bytes, regions: Sequence[Region], language: Language, tokens: TokenText, deadline: float | None = None
) -> list[str]:
    """Return a fill for each region so that the text is valid; "" for regions without one.

    ``deadline`` is a ``time.monotonic`` instant.
    """
    constraint = SyntaxConstraint(text, regions, language, tokens, deadline=deadline)
    return constraint.foresee([GapView((), (), budget=region.max_tokens) for region in regions])
