"""Recipes: ready-made refactors, found by name; those whose rules are data are read from ``recipes.toml``."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.places.gather import by_query, query_names
from lacuna_server.refactor.places.matching import WHOLE, PatternMatch
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.recipes import arms, python
from lacuna_server.refactor.rewriting.expand import rewrites
from lacuna_server.refactor.rewriting.refactoring import Found, Refactoring
from lacuna_server.refactor.rewriting.rewrite import parse_template

# So many bytes before a place are looked at.
NEAR = 2_000


class RecipeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tree-sitter query in some languages, and the template for its matches.

    A match is skipped where the text before it matches the regular expression ``not_after``.
    """

    languages: tuple[str, ...]
    query: str
    template: str
    label: str
    not_after: str = ""


class RuleSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A recipe of ``recipes.toml``."""

    summary: str
    rules: tuple[RecipeRule, ...]

    def find(self, sources: Sequence[Source], settings: Mapping[str, str]) -> Iterator[Found]:
        """Yields the places of all rules."""
        for rule in self.rules:
            template = parse_template(rule.template, query_names(rule.query) | {WHOLE})
            for source in sources:
                if source.language.name not in rule.languages:
                    continue
                matches = []
                for match in by_query(source, rule.query):
                    moved = _above_decorators(source, match)
                    before = source.data[max(0, moved.start - NEAR) : moved.start].decode(errors="ignore")
                    if not rule.not_after or re.search(rule.not_after, before) is None:
                        matches.append(moved)
                yield source, rewrites(source, matches, template, rule.label)


def _above_decorators(source: Source, match: PatternMatch) -> PatternMatch:
    """Moves an insertion before the decorators that are no part of the node that it precedes."""
    node = source.tree.root_node.descendant_for_byte_range(match.start, match.start)
    if match.start < match.end or node is None:
        return match
    while node.parent is not None and node.parent.start_byte == match.start:
        node = node.parent
    at, before = match.start, node.prev_sibling
    while before is not None and before.type == "decorator":
        at, before = before.start_byte, before.prev_sibling
    return replace(match, start=at, end=at)


PYTHON = frozenset({"python"})


@dataclass(frozen=True, slots=True)
class Recipe:
    """A ready-made refactor; ``settings`` maps the name of each setting to its meaning."""

    summary: str
    languages: frozenset[str]
    find: Callable[[Sequence[Source], Mapping[str, str]], Iterable[Found]]
    settings: Mapping[str, str] = field(default_factory=dict)


@cache
def recipes() -> dict[str, Recipe]:
    """Returns all recipes by name."""
    text = (resources.files(__package__) / "recipes.toml").read_bytes()
    known = {
        "annotations": Recipe("add types to parameters and return values that have none", PYTHON, python.annotated),
        "arms": Recipe("add the missing arms to a match or switch over an enum", frozenset(arms.syntaxes()), arms.find),
        "logging": Recipe("replace print calls by logging calls", PYTHON, python.logged),
        "parameter": Recipe(
            "add a parameter to a function and pass it from its callers",
            PYTHON,
            python.with_parameter,
            python.PARAMETER,
        ),
    }
    for name, one in msgspec.toml.decode(text, type=dict[str, RuleSet]).items():
        languages = frozenset(language for rule in one.rules for language in rule.languages)
        known[name] = Recipe(one.summary, languages, one.find)
    return dict(sorted(known.items()))


def described(name: str) -> dict[str, Any]:
    """Returns the JSON object that describes a recipe."""
    recipe = recipes()[name]
    languages = sorted(recipe.languages)
    return {"name": name, "summary": recipe.summary, "languages": languages, "settings": dict(recipe.settings)}


def by_recipe(name: str, settings: Mapping[str, str]) -> Refactoring:
    """Returns a recipe as a refactoring. Raises RequestError for an unknown name or setting."""
    recipe = recipes().get(name)
    if recipe is None:
        raise RequestError(f"unknown recipe {name!r}; known: {', '.join(recipes())}")
    for key in settings:
        if key not in recipe.settings:
            known = ", ".join(recipe.settings) or "none"
            raise RequestError(f"the recipe {name} has no setting {key!r}; known: {known}")
    return Refactoring(recipe.summary, lambda sources: recipe.find(sources, settings), recipe.languages)
