"""Syntax constraints: what of the runs that a model has read is taken into the fills, and where these may end.

What is delivered keeps the file readable for tree-sitter, and keeps the rules of its region. The package may import
``languages``, ``tokens`` and ``core``.
"""

from collections.abc import Sequence

from lacuna_model.core.constraint import Constraint, TokenText
from lacuna_model.core.params import Region
from lacuna_model.core.regions import RULES
from lacuna_model.core.work import Clock
from lacuna_model.languages.language import Language
from lacuna_model.languages.registry import LANGUAGES, language_for
from lacuna_model.syntax.constraint import SyntaxConstraint
from lacuna_model.syntax.document import Document, parses
from lacuna_model.syntax.excerpt import excerpt, scanning
from lacuna_model.syntax.readable import Readable
from lacuna_model.syntax.region import allowed_tokens
from lacuna_model.syntax.stand_ins import named
from lacuna_model.syntax.stand_ins import stand_ins as short_texts

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


def stand_ins(text: bytes, regions: Sequence[Region], language: Language, deadline: float | None = None) -> list[str]:
    """Return a text for each region so that the whole is valid, as long as they are not filled.

    ``deadline`` is a ``time.monotonic`` instant.
    """
    return short_texts(named(text, regions), regions, language, Clock(deadline))


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
    if known is None and not any(getattr(region, rule) for region in regions for rule in ANY_RULE):
        return Constraint(tokens)
    lines_above = 0
    if known is not None:
        whole, (first, *_) = text, regions
        text, regions = excerpt(whole, regions, known)
        lines_above = whole.count(b"\n", 0, first.start - regions[0].start)
    if known is not None and open_ended and len(regions) == 1:
        return Readable(named(text[: regions[0].start], regions), known, tokens)
    if known is not None:
        text = named(text, regions)
    return SyntaxConstraint(text, regions, known, tokens, deadline=deadline, lines_above=lines_above)
