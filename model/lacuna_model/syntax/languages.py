"""The registry of languages: extensions, grammar wheel, and the words a minimal completion is made of."""

import importlib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath

import tree_sitter

from lacuna_model.syntax.parsing import Parser


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
    of its name closes.
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

    def opener_of(self, closer: bytes) -> bytes:
        """What begins the string or comment that ``closer`` ends; "" for none."""
        return next((begin for begin, end in (*self.block_comment, *self.raw) if end == closer), closer)


@dataclass(frozen=True, slots=True)
class Language:
    """A language that fills can be kept valid in.

    ``columns`` says that its blocks are columns, which the grammar does not check; ``splits`` that a few statements
    out of the middle of a file parse on their own.
    """

    name: str
    extensions: tuple[str, ...]
    module: str
    symbol: str = "language"
    aliases: tuple[str, ...] = ()
    columns: bool = False
    splits: bool = True
    lexicon: Lexicon = Lexicon()

    def grammar(self) -> tree_sitter.Language:
        """The tree-sitter grammar; its wheel is imported on first use."""
        return _load_grammar(self.module, self.symbol)

    def parser(self) -> Parser:
        """A parser of its grammar, which ends in time."""
        return Parser(self.grammar())


@cache
def _load_grammar(module: str, symbol: str) -> tree_sitter.Language:
    return tree_sitter.Language(getattr(importlib.import_module(module), symbol)())


_HASH = (b"#",)
_PYTHON_HEADERS = frozenset(
    b"if elif else for while def class with try except finally async match case".split(),
)
_RUBY_WORDS = (b"def", b"class", b"module", b"if", b"unless", b"while", b"until", b"case", b"begin", b"do", b"for")
# A slash where an operand is due; without one in front of it, or with a space between.
_REGEX_AT = rb"(?:(?<=[(,=:!&|?;\[{}])|(?<=[(,=:!&|?;\[{}] )|(?<=return ))"
_REGEX = _REGEX_AT + rb"/(?![*/])(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\n\\\[])+/"
_CHARACTER = rb"'(?:\\[^'\n]{1,10}|\\'|[^'\\\n]{1,4})'"
_DO = (b"do", b" while (x);")
_C = Lexicon(
    heads=(b"void x() ", b"", b"struct x ", b"x = ", b"switch (x) ", b"enum x ", b"if (x) ", b"do "),
    tails=(_DO,),
    conditionals=True,
)
_JAVA = Lexicon(
    declarations=(b"class x {}",),
    heads=(
        b"class x ",
        b"",
        b"void x() ",
        b"switch (x) ",
        b"enum x ",
        b"x[] x = ",
        b"if (x) ",
        b"try ",
        b"x = new x() ",
    ),
)
_CPP = Lexicon(
    declarations=(b"class x;",),
    raw=((b'R"(', b')"'),),
    heads=(
        b"void x() ",
        b"",
        b"struct x ",
        b"namespace x ",
        b"x = ",
        b"switch (x) ",
        b"if (x) ",
        b"auto x = [] ",
        b"try ",
    ),
    tails=(_DO, (b"try", b" catch (...) {}")),
    conditionals=True,
)
_SCRIPT = Lexicon(
    declarations=(b"class x {}", b"x() {}"),
    quotes=(b'"', b"'", b"`"),
    atoms=(_REGEX,),
    heads=(
        b"",
        b"function x() ",
        b"class x ",
        b"if (x) ",
        b"x() ",
        b"x = ",
        b"x: ",
        b"switch (x) ",
        b"interface x ",
        b"try ",
        b"import ",
    ),
    tails=(_DO, (b"try", b" finally {}"), (b"import", b' from "x"')),
    field=b"x: x",
)
_TAGGED_SCRIPT = replace(_SCRIPT, tags=True)
_GO = Lexicon(
    quotes=(b'"', b"'", b"`"),
    heads=(b"func x() ", b"", b"type x struct ", b"switch ", b"x = x", b"if x ", b"for ", b"x: struct "),
    tails=((b"defer", b"()"), (b"go", b"()")),
    field=b"x: x",
    terminator=b"",
)
_RUST = Lexicon(
    quotes=(b'"',),
    atoms=(_CHARACTER,),
    raw=((b'r#"', b'"#'),),
    heads=(b"fn x() ", b"", b"struct x ", b"impl x ", b"match x ", b"enum x ", b"x => ", b"if x ", b"x = x ", b"x: x "),
    field=b"x: x",
)
_PYTHON = Lexicon(
    links=(b" in x", b" else x", b"=x"),
    declarations=(b"def x(): pass",),
    line_comment=_HASH,
    block_comment=(),
    quotes=(b'"""', b"'''", b'"', b"'"),
    columns=True,
    field=b"x: x",
    statement=b"pass",
    filler=b"pass",
    body=b": pass",
    terminator=b"",
    headers=_PYTHON_HEADERS,
)
_BASH = Lexicon(
    brackets=(b"[]", b"{}"),  # a lone ")" ends a pattern of a case
    line_comment=_HASH,
    block_comment=(),
    quotes=(b'"', b"'", b"`"),
    statement=b":",
    body=b" :",
    terminator=b"",
    blocks=(
        (b"if", b"fi", b"if x; then"),
        (b"do", b"done", b"while x; do"),
        (b"case", b"esac", b"case x in"),
    ),
)
_RUBY = Lexicon(
    line_comment=_HASH,
    block_comment=(),
    quotes=(b'"', b"'", b"`"),
    body=b"",
    terminator=b"",
    blocks=tuple((word, b"end", b"if x") for word in _RUBY_WORDS),
)
_LUA = Lexicon(
    line_comment=(b"--",),
    block_comment=((b"--[[", b"]]"),),
    operand=b"x",
    body=b"",
    terminator=b"",
    blocks=(
        (b"function", b"end", b"function x()"),
        (b"if", b"end", b"if x then"),
        (b"do", b"end", b"do"),
    ),
)
_PHP = Lexicon(
    heads=(b"", b"function x() ", b"class x ", b"switch ($x) ", b"if ($x) "), line_comment=(b"//", b"#"), operand=b"$x"
)
_JSON = Lexicon(
    heads=(b"", b'"x": ', b', "x": ', b", "),
    line_comment=(),
    block_comment=(),
    quotes=(b'"',),
    operand=b"0",
    body=b"",
    terminator=b"",
)
_CSS = Lexicon(heads=(b"x ", b"@media x "), line_comment=(), operand=b"x", statement=b"x:x;")
_MARKUP = Lexicon(
    line_comment=(),
    block_comment=((b"<!--", b"-->"),),
    brackets=(b"<>",),
    body=b"",
    terminator=b"",
    operand=b"x",
    tags=True,
)
_YAML = Lexicon(links=(b": x", b":"), line_comment=_HASH, block_comment=(), operand=b"x", body=b": x", terminator=b"")
_TOML = Lexicon(
    links=(b" = 0", b"]"),
    line_comment=_HASH,
    block_comment=(),
    quotes=(b'"""', b"'''", b'"', b"'"),
    operand=b"0",
    body=b" = 0",
    terminator=b"",
)

LANGUAGES: tuple[Language, ...] = (
    Language("python", (".py", ".pyi", ".pyw"), "tree_sitter_python", columns=True, lexicon=_PYTHON, aliases=("py",)),
    Language(
        "javascript",
        (".js", ".mjs", ".cjs", ".jsx"),
        "tree_sitter_javascript",
        aliases=("js", "javascriptreact"),
        lexicon=_TAGGED_SCRIPT,
    ),
    Language(
        "typescript",
        (".ts", ".mts", ".cts"),
        "tree_sitter_typescript",
        "language_typescript",
        aliases=("ts",),
        lexicon=_SCRIPT,
    ),
    Language(
        "tsx",
        (".tsx",),
        "tree_sitter_typescript",
        "language_tsx",
        aliases=("typescriptreact",),
        lexicon=_TAGGED_SCRIPT,
    ),
    Language("go", (".go",), "tree_sitter_go", aliases=("golang",), lexicon=_GO),
    Language("rust", (".rs",), "tree_sitter_rust", aliases=("rs",), lexicon=_RUST),
    Language("java", (".java",), "tree_sitter_java", lexicon=_JAVA),
    Language("c", (".c", ".h"), "tree_sitter_c", lexicon=_C),
    Language(
        "cpp", (".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx"), "tree_sitter_cpp", aliases=("c++", "cxx"), lexicon=_CPP
    ),
    Language("json", (".json",), "tree_sitter_json", splits=False, lexicon=_JSON),
    Language("bash", (".sh", ".bash"), "tree_sitter_bash", aliases=("shellscript", "sh", "shell"), lexicon=_BASH),
    Language("csharp", (".cs",), "tree_sitter_c_sharp", aliases=("c#", "c_sharp", "cs"), lexicon=_JAVA),
    Language("ruby", (".rb", ".rake"), "tree_sitter_ruby", aliases=("rb",), lexicon=_RUBY),
    Language("php", (".php",), "tree_sitter_php", "language_php", splits=False, lexicon=_PHP),
    Language("lua", (".lua",), "tree_sitter_lua", lexicon=_LUA),
    Language("html", (".html", ".htm"), "tree_sitter_html", splits=False, lexicon=_MARKUP),
    Language("css", (".css",), "tree_sitter_css", lexicon=_CSS),
    Language("yaml", (".yaml", ".yml"), "tree_sitter_yaml", splits=False, aliases=("yml",), lexicon=_YAML),
    Language("toml", (".toml",), "tree_sitter_toml", splits=False, lexicon=_TOML),
)

_BY_NAME = {name: language for language in LANGUAGES for name in (language.name, *language.aliases)}
_BY_EXTENSION = {extension: language for language in LANGUAGES for extension in language.extensions}


def language_for(path: str = "", name: str = "") -> Language | None:
    """The language of that name, or else of the path's extension; None where neither is known."""
    if name:
        return _BY_NAME.get(name.lower())
    return _BY_EXTENSION.get(PurePath(path).suffix.lower())
