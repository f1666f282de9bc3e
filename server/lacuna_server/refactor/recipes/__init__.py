"""Recipes: ready-made refactors, found by name.

It may import ``places`` and ``rewriting``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.recipes import annotations, arms, logging_calls, parameter
from lacuna_server.refactor.recipes.rules import rule_sets
from lacuna_server.refactor.rewriting.refactoring import Found, Refactoring

PYTHON = frozenset({"python"})


@dataclass(frozen=True, slots=True)
class Recipe:
    """A ready-made refactor; ``settings`` maps the name of each setting to its meaning."""

    summary: str
    languages: frozenset[str]
    find: Callable[[Sequence[Source], Mapping[str, str]], Iterable[Found]]
    settings: Mapping[str, str] = field(default_factory=dict)


def recipes() -> dict[str, Recipe]:
    """Returns all recipes by name."""
    known = {
        "annotations": Recipe("add types to parameters and return values that have none", PYTHON, annotations.find),
        "arms": Recipe("add the missing arms to a match or switch over an enum", frozenset(arms.syntaxes()), arms.find),
        "logging": Recipe("replace print calls by logging calls", PYTHON, logging_calls.find),
        "parameter": Recipe(
            "add a parameter to a function and pass it from its callers", PYTHON, parameter.find, parameter.SETTINGS
        ),
    }
    known |= {name: Recipe(rules.summary, rules.languages, rules.find) for name, rules in rule_sets().items()}
    return dict(sorted(known.items()))


def described(name: str) -> dict[str, Any]:
    """Returns the JSON object that describes a recipe."""
    recipe = recipes()[name]
    return {
        "name": name,
        "summary": recipe.summary,
        "languages": sorted(recipe.languages),
        "settings": dict(recipe.settings),
    }


def by_recipe(name: str, settings: Mapping[str, str]) -> Refactoring:
    """Returns a recipe as a refactoring. Raises RequestError for an unknown name or setting."""
    recipe = recipes().get(name)
    if recipe is None:
        raise RequestError(f"unknown recipe {name!r}; known: {', '.join(recipes())}")
    for key in settings:
        if key not in recipe.settings:
            raise RequestError(
                f"the recipe {name} has no setting {key!r}; known: {', '.join(recipe.settings) or 'none'}"
            )
    return Refactoring(recipe.summary, partial(_find, recipe, settings), recipe.languages)


def _find(recipe: Recipe, settings: Mapping[str, str], sources: Sequence[Source]) -> Iterable[Found]:
    return recipe.find(sources, settings)
