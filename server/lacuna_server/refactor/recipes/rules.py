"""Recipes whose rules are data, read from ``recipes.toml``."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

import msgspec

from lacuna_server.refactor.places.select import WHOLE, by_query, query_names
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.rewriting.expand import rewrites
from lacuna_server.refactor.rewriting.refactoring import Found
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

    @property
    def languages(self) -> frozenset[str]:
        """The languages of its rules."""
        return frozenset(language for rule in self.rules for language in rule.languages)

    def find(self, sources: Sequence[Source], settings: Mapping[str, str]) -> Iterator[Found]:
        """Yields the places of all rules."""
        for rule in self.rules:
            template = parse_template(rule.template, query_names(rule.query) | {WHOLE})
            for source in sources:
                if source.language.name not in rule.languages:
                    continue
                matches = [match for match in by_query(source, rule.query) if _admits(rule, source, match.start)]
                for item in rewrites(source, matches, template, rule.label):
                    yield source, item


@cache
def rule_sets() -> dict[str, RuleSet]:
    """Returns all recipes of ``recipes.toml`` by name."""
    text = (resources.files(__package__) / "recipes.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), type=dict[str, RuleSet])


def _admits(rule: RecipeRule, source: Source, start: int) -> bool:
    before = source.data[max(0, start - NEAR) : start].decode(errors="ignore")
    return not rule.not_after or re.search(rule.not_after, before) is None
