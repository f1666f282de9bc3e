"""Ends that are no brackets: closing tags, anchors, code in strings. They are put into the completions of brackets."""

from collections.abc import Sequence
from functools import partial

from lacuna_model.languages.language import Language
from lacuna_model.syntax.text.anchors import Anchors
from lacuna_model.syntax.text.strings_with_code import Substitutions
from lacuna_model.syntax.text.tags import Completions, Tags

Nested = Tags | Anchors | Substitutions


def nested_in(language: Language, before: bytes, after: bytes) -> list[Nested]:
    """Return the sources for a gap between two texts, as far as the language has them."""
    tags = Tags(before, after) if language.lexicon.tags else None
    anchors = Anchors(before) if language.lexicon.anchors else None
    strings, operand = language.strings, language.lexicon.operand
    inner = Substitutions(strings, before, after, operand) if strings is not None else None
    return [one for one in (tags, anchors, inner) if one is not None]


def completed(ends: Completions, nested: Sequence[Nested]) -> Completions:
    """Return the completions of brackets with the other ends in them."""
    for one in nested:
        ends = partial(one.completions, others=ends)
    return ends
