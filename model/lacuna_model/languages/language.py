"""A language: its grammar, and what the grammar does not tell."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import tree_sitter

from lacuna_model.languages.declarations import Declarations
from lacuna_model.languages.parsing import Parser
from lacuna_model.languages.rules import Rules

StrictParser = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The surface of a language, as the scanner and the minimal completions need it.

    ``operand`` is the shortest expression, ``statement`` the shortest statement to write where one is required,
    ``field`` a field of a value, ``filler`` a statement that is allowed anywhere at the top level. ``headers`` are the
    first words of headers of indented blocks; ``body`` turns an open header into a statement. ``blocks`` are the blocks
    delimited by words: opener, closer, and the shortest head. ``links`` are texts that an unfinished expression of
    several words may lack. ``atoms`` are patterns of literals without quotes: regular expressions, characters. ``raw``
    are strings with an opener and a closer of their own. ``declarations`` are texts that may follow an annotation.
    ``conditionals`` tells that there are lines such as ``#if`` and ``#endif``, ``columns`` that blocks are indented.
    ``heads`` are texts that may precede a block's brace, the first of them where no block is open; ``tails`` are texts
    that must follow the block of a word. ``tags`` tells that a tag is closed by another tag of its name, ``anchors``
    that names refer to values marked above.
    """

    line_comment: tuple[bytes, ...] = (b"//",)
    block_comment: tuple[tuple[bytes, bytes], ...] = ((b"/*", b"*/"),)
    quotes: tuple[bytes, ...] = (b'"', b"'")
    brackets: tuple[bytes, ...] = (b"()", b"[]", b"{}")
    operand: bytes = b"x"
    statement: bytes = b""
    field: bytes = b""
    filler: bytes = b";"
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
    anchors: bool = False

    def opener_of(self, closer: bytes) -> bytes:
        """Return the opener of the string or comment that ``closer`` ends; ``closer`` itself if both are the same."""
        return next((begin for begin, end in (*self.block_comment, *self.raw) if end == closer), closer)


@dataclass(frozen=True)
class StrictParsers:
    """The ``parsers`` of a language, the strictest first, each of which raises ValueError or yaml.YAMLError.

    ``neutral`` are texts that may fill a gap of a sound text. Texts up to ``soon`` bytes are parsed at every check,
    larger ones at the end.
    """

    parsers: tuple[StrictParser, ...]
    neutral: tuple[str, ...]
    soon: int


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A language whose fills can be kept valid.

    ``columns`` tells that its blocks are indented, which the grammar does not check. ``rules`` and ``declarations``
    describe what the grammar accepts and the language does not, ``strict`` the parsers that read such a file in the
    end. ``definitions`` are the query files that find names for other files. ``breaks_parser`` tells of a text that the
    grammar's scanner cannot hold, which would write outside of its memory.
    """

    name: str
    extensions: tuple[str, ...]
    module: str
    symbol: str = "language"
    aliases: tuple[str, ...] = ()
    columns: bool = False
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
