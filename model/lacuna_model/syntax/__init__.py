"""Syntax constraints: tree-sitter and each region's own rules decide what the denoise loop may commit."""

from collections.abc import Sequence
from functools import partial

from lacuna_model.core.constraint import Constraint, GapView, TokenText, Unconstrained
from lacuna_model.core.params import Region
from lacuna_model.languages.language import Language
from lacuna_model.languages.registry import LANGUAGES, language_for
from lacuna_model.syntax.background import Background
from lacuna_model.syntax.check.document import parses
from lacuna_model.syntax.region.region_rules import RegionRules
from lacuna_model.syntax.stand_ins import stand_ins
from lacuna_model.syntax.witness import SyntaxConstraint

__all__ = ["LANGUAGES", "Language", "SyntaxConstraint", "constraint_for", "language_for", "parses", "stand_ins"]


def constraint_for(
    text: bytes,
    regions: Sequence[Region],
    path: str,
    language: str,
    tokens: TokenText,
    *,
    syntax: bool,
    deadline: float | None = None,
    prefixes: Sequence[bytes] = (),
) -> Constraint:
    """The constraint of a request: the syntax of its language and its regions' own rules.

    The language goes by name, else by the path's extension. ``Unconstrained`` where there is neither.
    Its searches end at the ``deadline``, a ``time.monotonic`` instant.
    A rule that cannot be compiled is a ``RequestError``.
    """
    known = language_for(path, language) if syntax else None
    if known is None and all(RegionRules(region, text[region.end :]).empty for region in regions):
        return Unconstrained(tokens)
    prefixes = prefixes or [b""] * len(regions)
    pairs = zip(regions, prefixes, strict=True)
    return Background(
        partial(SyntaxConstraint, text, regions, known, tokens, deadline=deadline),
        [GapView((), (), budget=region.max_tokens, prefix=prefix) for region, prefix in pairs],
    )
