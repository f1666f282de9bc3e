"""Where a language does not take what its tree-sitter grammar takes: queries for places, and who may stand there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lacuna_model.languages.predicates import Predicate, text_matches


def kinds(names: str) -> frozenset[str]:
    """Kinds of nodes, named with blanks between."""
    return frozenset(names.split())


@dataclass(frozen=True)
class Rules:
    """One language's rules.

    ``places`` is a query; ``predicates`` says by the name of a capture whether a captured node may stand there. What is
    captured by one of the names ``lasting`` may be due to a macro. ``reserved`` are words that are no names, unless
    their parent is one of ``quoting``. ``line_ends`` says that these may be semicolons. What is captured by one of the
    names ``firm`` is never let pass at a fill. What is captured by a name in ``blamed`` is out of place in one of its
    children, by index.
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
        """What finds a reserved word."""
        words = b"|".join(self.reserved.encode().split())
        return re.compile(rb"\b(?:%b)\b" % words if words else rb"(?!)")


LOOPS = kinds("for_statement while_statement do_statement")
# A line's end between a string's quotes is no blank, as the grammars have it.
ONE_LINE = text_matches(rb"(?s)(?:[^\n\\]|\\\r?.)*")
