"""What is said of where a language has what its tree-sitter grammar takes everywhere."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tree_sitter import Query

from lacuna_model.syntax.fits import Fits, said
from lacuna_model.syntax.languages import language_for
from lacuna_model.syntax.once import Once


@dataclass(frozen=True)
class Rules:
    """One language's rules.

    ``places`` is a query; ``fits`` says by the name of a capture whether a captured node may stand there. What is
    captured by one of the names ``lasting`` may be due to a macro. ``reserved`` are words that are no names, unless
    their parent is one of ``quoting``. ``line_ends`` says that these may be semicolons. What is captured by one of the
    names ``firm`` is never let pass at a fill, nor is a name declared twice (``once``). What is captured by a name in
    ``blamed`` is out of place in one of its children, by index.
    """

    language: str
    places: str = ""
    fits: Mapping[str, Fits] = field(default_factory=dict)
    reserved: str = ""
    quoting: frozenset[str] = frozenset()
    lasting: frozenset[str] = frozenset()
    line_ends: bool = False
    firm: frozenset[str] = frozenset()
    blamed: Mapping[str, int] = field(default_factory=dict)
    once: Once | None = None

    @cached_property
    def query(self) -> Query:
        """The compiled query."""
        language = language_for(name=self.language)
        assert language is not None
        return Query(language.grammar(), self.places)

    @cached_property
    def words(self) -> re.Pattern[bytes]:
        """What finds a reserved word."""
        words = b"|".join(self.reserved.encode().split())
        return re.compile(rb"\b(?:%b)\b" % words if words else rb"(?!)")


def kinds(names: str) -> frozenset[str]:
    """Kinds of nodes, named with blanks between."""
    return frozenset(names.split())


LOOPS = kinds("for_statement while_statement do_statement")
# A line's end between a string's quotes is no blank, as the grammars have it.
ONE_LINE = said(rb"(?s)(?:[^\n\\]|\\\r?.)*")
