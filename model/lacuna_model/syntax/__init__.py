"""Syntax constraints: decide which proposed tokens may be committed while the gaps are denoised.

A committed token has to keep the file parseable by tree-sitter and to keep the rules of its region. The package may
import ``languages``, ``hub`` and ``core``.
"""

import os
from collections.abc import Sequence
from functools import partial

from lacuna_model.core.constraint import Constraint, GapView, TokenText, Unconstrained
from lacuna_model.core.params import Region
from lacuna_model.languages.language import Language
from lacuna_model.languages.registry import LANGUAGES, language_for
from lacuna_model.syntax.background import Background
from lacuna_model.syntax.check.document import Document, parses
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.proving import stand_ins as proving_stand_ins
from lacuna_model.syntax.proving.constraint import Proving
from lacuna_model.syntax.readable import Readable
from lacuna_model.syntax.region.region_rules import RegionRules
from lacuna_model.syntax.stand_ins import stand_ins as witness_stand_ins
from lacuna_model.syntax.witness import SyntaxConstraint

__all__ = [
    "LANGUAGES",
    "Document",
    "Language",
    "SyntaxConstraint",
    "closed_constraint",
    "constraint_for",
    "language_for",
    "parses",
    "stand_ins",
]
# Whether fills are proved from left to right instead of by a witness. The variable is private: it goes once one of
# the two is chosen.
PROVES = os.environ.get("LACUNA_PROVES") == "1"


def closed_constraint(
    text: bytes,
    regions: Sequence[Region],
    language: Language | None,
    tokens: TokenText,
    *,
    strict: bool = False,
    deadline: float | None = None,
) -> Proving | SyntaxConstraint:
    """Return the constraint that keeps a file valid; ``strict``: errors of the text may not stay."""
    make = Proving if PROVES else SyntaxConstraint
    return make(text, regions, language, tokens, strict=strict, deadline=deadline)


def stand_ins(
    text: bytes, regions: Sequence[Region], language: Language, tokens: TokenText, deadline: float | None = None
) -> list[str]:
    """Return a text for each region so that the whole is valid, as long as they are not filled.

    ``deadline`` is a ``time.monotonic`` instant.
    """
    if PROVES:
        return proving_stand_ins.stand_ins(text, regions, language, Clock(deadline))
    return witness_stand_ins(text, regions, language, tokens, deadline)


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
    prefixes: Sequence[bytes] = (),
) -> Constraint:
    """Return the constraint of a request: the syntax of its language and the rules of its regions.

    The language is found by its name, else by the path's extension. Without a known language and without any rule the
    result is ``Unconstrained``. ``deadline`` is a ``time.monotonic`` instant at which all searches end. ``prefixes``
    holds one healed prefix per region, empty by default. A rule that cannot be compiled raises ``RequestError``, here
    or in the first call of the constraint.
    """
    known = language_for(path, language) if syntax else None
    if known is None and all(RegionRules(region, text[region.end :]).empty for region in regions):
        return Unconstrained(tokens)
    if known is not None and open_ended and len(regions) == 1:
        return Readable(text[: regions[0].start], known, tokens)
    if PROVES:
        return Proving(text, regions, known, tokens, deadline=deadline)
    prefixes = prefixes or [b""] * len(regions)
    pairs = zip(regions, prefixes, strict=True)
    return Background(
        partial(SyntaxConstraint, text, regions, known, tokens, deadline=deadline),
        [GapView((), (), budget=region.max_tokens, prefix=prefix) for region, prefix in pairs],
    )
