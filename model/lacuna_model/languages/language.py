"""A language: its grammar, and all that its grammar does not say."""

import importlib
from dataclasses import dataclass
from functools import cache

import tree_sitter

from lacuna_model.languages.declarations import Declarations
from lacuna_model.languages.parsing import Parser
from lacuna_model.languages.rules import Rules
from lacuna_model.languages.strict import StrictParsers
from lacuna_model.languages.strings import Strings


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What the scanner and the minimal completions need to know of a language's surface.

    ``operand`` is the shortest expression, ``statement`` the shortest statement to write where one is due, ``field`` a
    field of a value, ``filler`` a statement that may stand anywhere at the top level. ``headers`` are what the headers
    of blocks that are columns begin with, ``body`` is what turns an open header into a statement; ``blocks`` are the
    blocks that are words: what opens them, what closes them, and the shortest head of one. ``links`` are what an
    unfinished expression of several words may lack. ``atoms`` are patterns of literals that no quote tells: regular
    expressions, characters. ``raw`` are strings with an opener and a closer of their own. ``declarations`` are what may
    stand behind an annotation. ``conditionals`` says that there are lines as ``#if`` and ``#endif``, ``columns`` that
    blocks are columns. ``heads`` are what may stand in front of a block's brace, the first of them where no block is
    open, ``tails`` what must follow the block of a word where it ends. ``tags`` says that what a tag opens, another one
    of its name closes, ``anchors`` that names stand for what was marked with them above.
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
    anchors: bool = False

    def opener_of(self, closer: bytes) -> bytes:
        """What begins the string or comment that ``closer`` ends; "" for none."""
        return next((begin for begin, end in (*self.block_comment, *self.raw) if end == closer), closer)


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A language that fills can be kept valid in.

    ``columns`` says that its blocks are columns, which the grammar does not check; ``splits`` that a few statements
    out of the middle of a file parse on their own. ``rules`` and ``declarations`` say what the grammar takes and the
    language does not, ``strict`` what reads such a file in the end, ``strings`` which of its strings hold code.
    ``definitions`` are the query files that find what other files may name.
    """

    name: str
    extensions: tuple[str, ...]
    module: str
    symbol: str = "language"
    aliases: tuple[str, ...] = ()
    columns: bool = False
    splits: bool = True
    lexicon: Lexicon = Lexicon()
    rules: Rules | None = None
    declarations: Declarations | None = None
    strict: StrictParsers | None = None
    strings: Strings | None = None
    definitions: tuple[str, ...] = ()

    def grammar(self) -> tree_sitter.Language:
        """The tree-sitter grammar; its wheel is imported on first use."""
        return _load_grammar(self.module, self.symbol)

    def parser(self) -> Parser:
        """A parser of its grammar, which ends in time."""
        return Parser(self.grammar())


@cache
def _load_grammar(module: str, symbol: str) -> tree_sitter.Language:
    return tree_sitter.Language(getattr(importlib.import_module(module), symbol)())
