"""Syntax constraints: what of the runs that a model has read is taken into the fills, and where these may end.

What is delivered keeps the file readable for tree-sitter, and keeps the rules of its region.
"""

from collections.abc import Sequence

from lacuna_model.core.constraint import Constraint, TokenText
from lacuna_model.core.params import Region
from lacuna_model.core.regions import RULES
from lacuna_model.languages.language import Language
from lacuna_model.languages.registry import LANGUAGES, language_for
from lacuna_model.syntax.constraint import SyntaxConstraint
from lacuna_model.syntax.document import Document, parses
from lacuna_model.syntax.excerpt import excerpt, scanning
from lacuna_model.syntax.readable import Readable
from lacuna_model.syntax.region import allowed_tokens
from lacuna_model.syntax.stand_ins import named, stand_ins

__all__ = [
    "LANGUAGES",
    "Document",
    "Language",
    "SyntaxConstraint",
    "allowed_tokens",
    "constraint_for",
    "language_for",
    "parses",
    "scanning",
    "stand_ins",
]
ANY_RULE = (*RULES, "single_line", "max_lines")


def constraint_for(
    text: bytes,
    regions: Sequence[Region],
    path: str,
    language: str,
    tokens: TokenText,
    *,
    syntax: bool,
    open_ended: bool = False,
    deadline: float | None = None,
) -> Constraint:
    """Return the constraint of a request: the syntax of its language and the rules of its regions.

    The language is found by its name, else by the path's extension. Without a known language and without any rule the
    result takes everything. ``deadline`` is a ``time.monotonic`` instant at which all searches end. A rule that
    cannot be compiled raises ``RequestError``, here or in the first call of the constraint.
    """
    known = language_for(path, language) if syntax else None
    if known is None:
        is_ruled = any(getattr(region, rule) for region in regions for rule in ANY_RULE)
        return SyntaxConstraint(text, regions, None, tokens, deadline=deadline) if is_ruled else Constraint(tokens)
    part, within = excerpt(text, regions, known)
    if open_ended and len(within) == 1:
        return Readable(named(part[: within[0].start], within), known, tokens)
    lines_above = text.count(b"\n", 0, regions[0].start - within[0].start)
    return SyntaxConstraint(named(part, within), within, known, tokens, deadline=deadline, lines_above=lines_above)
