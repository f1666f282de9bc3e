"""Rules where a language is stricter than its tree-sitter grammar: queries for places, and predicates of nodes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lacuna_model.languages.predicates import Predicate, text_matches


def kinds(names: str) -> frozenset[str]:
    """Return kinds of nodes, given as names with blanks between."""
    return frozenset(names.split())


@dataclass(frozen=True)
class Rules:
    """One language's rules.

    ``places`` is a query; ``predicates`` holds by capture name the predicate that allows a captured node. Captures with
    one of the names ``lasting`` may be due to a macro. ``reserved`` are words that are no names, unless their parent is
    one of ``quoting``. ``line_ends`` tells that line ends may be semicolons. Captures with one of the names ``firm``
    are never excused at a fill. Captures with a name in ``blamed`` are out of place in one of their children, by index.
    """

    places: str = ""
    predicates: Mapping[str, Predicate] = field(default_factory=dict)
    reserved: str = ""
    quoting: frozenset[str] = frozenset()
    lasting: frozenset[str] = frozenset()
    line_ends: bool = False
    firm: frozenset[str] = frozenset()
    blamed: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def words(self) -> re.Pattern[bytes]:
        """A pattern that finds a reserved word."""
        words = b"|".join(self.reserved.encode().split())
        return re.compile(rb"\b(?:%b)\b" % words if words else rb"(?!)")


LOOPS = kinds("for_statement while_statement do_statement")
# Allows no line end between a string's quotes, where the grammars read it as a blank.
ONE_LINE = text_matches(rb"(?s)(?:[^\n\\]|\\\r?.)*")
