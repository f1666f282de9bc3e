"""What is known of a language: its grammar, rules and declarations."""

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

import tree_sitter
from tree_sitter import Node

from lacuna_model.languages.parsing import Parser
from lacuna_model.languages.predicates import Predicate

CLASH = 2
Weight = Callable[[Node, Node], int]  # of a declaring node and its child that contains the name


class Role(NamedTuple):
    """How a kind of node declares a name.

    The name is in the first of ``fields`` that the node has; "" stands for its first child and "*" for any. Names clash
    only within one ``space`` and with the same ``signature`` (some fields or kinds of children), if their weights sum
    to at least ``CLASH``. A declaration ``within`` itself is its own scope. One that ``renews`` a name may follow
    another declaration of it. With ``until``, the scope is the next node around of that kind.
    """

    fields: str = "name"
    space: str = "value"
    weight: int | Weight = CLASH
    signature: str = ""
    within: bool = False
    renews: Callable[[Node, Node], bool] = lambda _holder, _child: False
    until: str = ""


@dataclass(frozen=True)
class Declarations:
    """One language's declarations.

    ``names`` are the kinds of nodes that are names, ``roles`` the nodes that declare them, ``through`` the nodes that
    may lie between (with the field that leads to the name), ``scopes`` the nodes where declarations end: kinds with
    blanks between, in a key too. A scope of ``bodies`` is that of the ``owners`` around it. With ``walls``, names of
    inner scopes clash with those of outer scopes up to there; if they are ``ordered``, only with earlier ones. Names of
    ``members`` may be used again within.
    """

    names: str
    roles: Mapping[str, Role]
    scopes: frozenset[str]
    through: Mapping[str, str] = field(default_factory=dict)
    bodies: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    walls: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    ordered: bool = False


TYPE = Role(space="type")
KEY = Role("key", "key")


def kinds(names: str) -> frozenset[str]:
    """Return kinds of nodes, given as names with blanks between."""
    return frozenset(names.split())


def texts(joined: str) -> tuple[bytes, ...]:
    """Return texts, given with bars between."""
    return tuple(joined.encode().split(b"|"))


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


StrictParser = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The surface of a language, as the scanner and the minimal completions need it.

    ``operand`` is the shortest expression, ``statement`` the shortest statement to write where one is required.
    ``headers`` are the first words of headers of indented blocks; ``body`` turns an open header into a statement.
    ``blocks`` are the blocks delimited by words: opener, closer, and the shortest head. ``links`` are texts that an
    unfinished expression of several words may lack. ``atoms`` are patterns of literals without quotes: regular
    expressions, characters. ``raw``
    are strings with an opener and a closer of their own. ``declarations`` are texts that may follow an annotation.
    ``conditionals`` tells that there are lines such as ``#if`` and ``#endif``, ``columns`` that blocks are indented,
    which the grammar does not check. ``heads`` are texts that may precede a block's brace, the first of them where no
    block is open; ``tails`` are texts that must follow the block of a word. ``tags`` tells that a tag is closed by
    another tag of its name.
    """

    line_comment: tuple[bytes, ...] = (b"//",)
    block_comment: tuple[tuple[bytes, bytes], ...] = ((b"/*", b"*/"),)
    quotes: tuple[bytes, ...] = (b'"', b"'")
    brackets: tuple[bytes, ...] = (b"()", b"[]", b"{}")
    operand: bytes = b"x"
    statement: bytes = b""
    body: bytes = b" {}"
    terminator: bytes = b";"
    headers: frozenset[bytes] = frozenset()
    blocks: tuple[tuple[bytes, bytes, bytes], ...] = ()
    links: tuple[bytes, ...] = ()
    atoms: tuple[bytes, ...] = ()
    raw: tuple[tuple[bytes, bytes], ...] = ()
    declarations: tuple[bytes, ...] = ()
    heads: tuple[bytes, ...] = ()
    tails: tuple[tuple[bytes, bytes], ...] = ()
    conditionals: bool = False
    columns: bool = False
    tags: bool = False
    long_strings: bool = False

    def opener_of(self, closer: bytes) -> bytes:
        """Return the opener of the string or comment that ``closer`` ends; ``closer`` itself if both are the same."""
        return next((begin for begin, end in (*self.block_comment, *self.raw) if end == closer), closer)


@dataclass(frozen=True)
class StrictParsers:
    """The ``parsers`` of a language, the strictest first: each raises SyntaxError, ValueError or yaml.YAMLError.

    ``neutral`` are texts that may fill a gap of a sound text, ``lines`` those that may stand for its lines. Texts up to
    ``soon`` bytes are parsed at every check, larger ones at the end. A parse costs ``byte_ns`` of work for each byte.

    In a document that they refuse with every neutral text no fill is blamed. With ``newer``, which finds syntax that
    they may be too old for, one is, if the error is at the gap's lines and nothing looks newer. Without it, what leaves
    the document unchanged is never blamed.
    """

    parsers: tuple[StrictParser, ...]
    neutral: tuple[str, ...]
    soon: int
    newer: re.Pattern[bytes] | None = None
    lines: tuple[str, ...] = ()
    byte_ns: int = 400


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A language whose fills can be kept valid.

    ``rules`` and ``declarations`` describe what the grammar accepts and the language does not, ``strict`` the parsers
    that read such a file in the end. ``definitions`` are the query files that find names for other files.
    ``breaks_parser`` tells of a text that the grammar's scanner cannot hold, which would write outside of its memory.
    """

    name: str
    extensions: tuple[str, ...]
    module: str
    symbol: str = "language"
    aliases: tuple[str, ...] = ()
    lexicon: Lexicon = Lexicon()
    rules: Rules | None = None
    declarations: Declarations | None = None
    strict: StrictParsers | None = None
    definitions: tuple[str, ...] = ()
    breaks_parser: Callable[[bytes], bool] | None = None

    def grammar(self) -> tree_sitter.Language:
        """Return the tree-sitter grammar; its wheel is imported on first use."""
        return _load_grammar(self.module, self.symbol)

    def parser(self) -> Parser:
        """Return a parser of its grammar, with a time limit."""
        return Parser(self.grammar(), self.breaks_parser)


@cache
def _load_grammar(module: str, symbol: str) -> tree_sitter.Language:
    return tree_sitter.Language(getattr(importlib.import_module(module), symbol)())
