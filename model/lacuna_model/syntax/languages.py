"""The registry of languages: extensions, grammar wheel, and the words a minimal completion is made of."""

import importlib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath

import tree_sitter


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What the scanner and the minimal completions need to know of a language's surface.

    ``operand`` is the shortest expression, ``statement`` the shortest statement to write where one is due,
    ``filler`` a statement that may stand anywhere at the top level, ``body`` what turns an open
    compound header into a statement, ``links`` what an unfinished expression of several words
    may lack. ``heads`` are what may stand in front of a block's brace, ``outer`` the one of them
    to stand where no bare block may, outside of all others, ``blocks`` the blocks that are words: what
    opens them, what closes them, and the shortest head of one. ``atoms`` are patterns of literals that no quote
    tells: regular expressions, characters. ``raw`` are strings with an opener and a closer of their own.
    ``function`` is the head of an anonymous function, ``choice`` what comes before the second half of a choice
    between two values, ``field`` a field of a value whose brace ``record`` stands in front of. ``tails`` are what must
    follow the block of a word where it ends, unless its line begins so. ``groups`` are what comes before parentheses
    that hold declarations, ``macro`` before those that may hold anything. ``declarations`` are what may stand behind an
    annotation. ``conditionals`` says that there are lines as ``#if`` and ``#endif``.
    """

    line_comment: tuple[bytes, ...] = (b"//",)
    block_comment: tuple[tuple[bytes, bytes], ...] = ((b"/*", b"*/"),)
    quotes: tuple[bytes, ...] = (b'"', b"'")
    brackets: tuple[bytes, ...] = (b"()", b"[]", b"{}")
    operand: bytes = b"x"
    statement: bytes = b""
    filler: bytes = b";"
    body: bytes = b" {}"
    terminator: bytes = b";"
    headers: frozenset[bytes] = frozenset()
    blocks: tuple[tuple[bytes, bytes, bytes], ...] = ()
    heads: tuple[bytes, ...] = (b"",)
    outer: bytes = b""
    links: tuple[bytes, ...] = ()
    atoms: tuple[bytes, ...] = ()
    raw: tuple[tuple[bytes, bytes], ...] = ()
    field: bytes = b""
    record: bytes = b""
    tails: tuple[tuple[bytes, bytes, tuple[bytes, ...]], ...] = ()
    groups: tuple[bytes, ...] = ()
    macro: bytes = b""
    declarations: tuple[bytes, ...] = ()
    conditionals: bool = False
    function: bytes = b""
    choice: bytes = b""
    columns: bool = False

    @property
    def braces(self) -> bool:
        """Whether blocks stand in braces, as lists of elements do."""
        return b"{}" in self.brackets and not self.columns

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


@cache
def _load_grammar(module: str, symbol: str) -> tree_sitter.Language:
    return tree_sitter.Language(getattr(importlib.import_module(module), symbol)())


_HASH = (b"#",)
_C_HEADERS = frozenset({b"if", b"for", b"while", b"switch", b"else", b"do", b"try", b"catch", b"class", b"struct"})
_PYTHON_HEADERS = frozenset(
    b"if elif else for while def class with try except finally async match case".split(),
)
_C_BLOCKS = (b"", b"void x() ", b"struct x ", b"x = ", b"switch (x) ", b"enum x ", b"if (x) ", b"do ")
_JAVA_BLOCKS = (
    b"",
    b"void x() ",
    b"class x ",
    b"switch (x) ",
    b"enum x ",
    b"x[] x = ",
    b"if (x) ",
    b"try ",
    b"x = new x() ",
)
_CPP_BLOCKS = (
    b"",
    b"void x() ",
    b"struct x ",
    b"namespace x ",
    b"x = ",
    b"switch (x) ",
    b"if (x) ",
    b"auto x = [] ",
    b"try ",
)
_RUBY_WORDS = (b"def", b"class", b"module", b"if", b"unless", b"while", b"until", b"case", b"begin", b"do", b"for")
_C_LINKS = (b" x()", b" x = x", b" x {}", b"> x", b"case x:", b"if (x)", b"x,")
_JAVA_LINKS = (b" void x()", b" class x", b" x = x", b" void x() {}", b"case x:", b"if (x)", b"x,")
_CHOICE = b" ? x"
# A slash where an operand is due; without one in front of it, or with a space between.
_REGEX_AT = rb"(?:(?<=[(,=:!&|?;\[{}])|(?<=[(,=:!&|?;\[{}] )|(?<=return ))"
_REGEX = _REGEX_AT + rb"/(?![*/])(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\n\\\[])+/"
_CHARACTER = rb"'(?:\\[^'\n]{1,10}|\\'|[^'\\\n]{1,4})'"
_DO = (b"do", b" while (x);", ())
_C = Lexicon(
    tails=(_DO,),
    headers=_C_HEADERS,
    heads=_C_BLOCKS,
    outer=b"void x() ",
    links=_C_LINKS,
    choice=_CHOICE,
    conditionals=True,
)
_JAVA = Lexicon(
    declarations=(b"class x {}",),
    headers=_C_HEADERS,
    heads=_JAVA_BLOCKS,
    outer=b"class x ",
    links=_JAVA_LINKS,
    choice=_CHOICE,
    function=b"() -> ",
    tails=(_DO, (b"try", b" finally {}", ())),
)
_CPP = Lexicon(
    declarations=(b"class x;",),
    headers=_C_HEADERS,
    heads=_CPP_BLOCKS,
    outer=b"void x() ",
    links=_C_LINKS,
    raw=((b'R"(', b')"'),),
    tails=(_DO, (b"try", b" catch (...) {}", ())),
    conditionals=True,
    function=b"[] ",
    choice=_CHOICE,
)
_SCRIPT = Lexicon(
    declarations=(b"class x {}", b"x() {}"),
    links=(b" = x", b" x = x", b" x() {}", b": x", b" {}"),
    heads=(
        b"",
        b"function x() ",
        b"class x ",
        b"if (x) ",
        b"x() ",
        b"x = ",
        b"x: ",
        b"switch (x) ",
        b"try ",
        b"interface x ",
        b"enum x ",
        b"import ",
    ),
    headers=_C_HEADERS | {b"function"},
    quotes=(b'"', b"'", b"`"),
    atoms=(_REGEX,),
    tails=(_DO, (b"try", b" finally {}", ()), (b"import", b' from "x"', ())),
    field=b"x: x",
    function=b"() => ",
)
_TYPED = replace(
    _SCRIPT,
    tails=(*_SCRIPT.tails, (b"<", b">()", (b"type", b"export", b"interface"))),
)
_GO = Lexicon(
    outer=b"func x() ",
    tails=((b"struct", b"{}", (b"type",)), (b"defer", b"()", ()), (b"go", b"()", ())),
    links=(b" x()", b" := x", b" x() {}", b" x", b"case x:", b"x,"),
    field=b"x: x",
    record=b"x",
    function=b"func() ",
    heads=(
        b"",
        b"func x() ",
        b"type x struct ",
        b"switch ",
        b"x = x",
        b"if x ",
        b"for ",
        b"select ",
        b"x := []struct ",
        b"x: struct ",
        b"*interface ",
    ),
    groups=(b"import ", b"var ", b"const "),
    headers=_C_HEADERS | {b"func"},
    quotes=(b'"', b"'", b"`"),
    terminator=b"",
)
_RUST = Lexicon(
    outer=b"fn x() ",
    links=(b" fn x()", b": x", b" {}", b" x = x", b" fn x() {}", b"x,"),
    function=b"|| ",
    macro=b"x!",
    heads=(b"", b"fn x() ", b"struct x ", b"impl x ", b"match x ", b"enum x ", b"x => ", b"if x ", b"x = x ", b"x: x "),
    headers=_C_HEADERS | {b"fn", b"impl", b"match", b"loop"},
    quotes=(b'"',),
    atoms=(_CHARACTER,),
    raw=((b'r#"', b'"#'),),
    field=b"x: x",
    record=b"x ",
)
_PYTHON = Lexicon(
    declarations=(b"def x(): pass",),
    line_comment=_HASH,
    block_comment=(),
    quotes=(b'"""', b"'''", b'"', b"'"),
    columns=True,
    field=b"x: x",
    links=(b" in x", b" else x", b"=x"),
    choice=b" if x",
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
    heads=(b"", b"function x() ", b"class x ", b"switch ($x) ", b"if ($x) "),
    line_comment=(b"//", b"#"),
    operand=b"$x",
    headers=_C_HEADERS | {b"function", b"foreach"},
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
    line_comment=(), block_comment=((b"<!--", b"-->"),), brackets=(b"<>",), body=b"", terminator=b"", operand=b"x"
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
        lexicon=_SCRIPT,
    ),
    Language(
        "typescript",
        (".ts", ".mts", ".cts"),
        "tree_sitter_typescript",
        "language_typescript",
        aliases=("ts",),
        lexicon=_TYPED,
    ),
    Language("tsx", (".tsx",), "tree_sitter_typescript", "language_tsx", aliases=("typescriptreact",), lexicon=_TYPED),
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
    Language("yaml", (".yaml", ".yml"), "tree_sitter_yaml", aliases=("yml",), lexicon=_YAML),
    Language("toml", (".toml",), "tree_sitter_toml", lexicon=_TOML),
)

_BY_NAME = {name: language for language in LANGUAGES for name in (language.name, *language.aliases)}
_BY_EXTENSION = {extension: language for language in LANGUAGES for extension in language.extensions}


def language_for(path: str = "", name: str = "") -> Language | None:
    """The language of that name, or else of the path's extension; None where neither is known."""
    if name:
        return _BY_NAME.get(name.lower())
    return _BY_EXTENSION.get(PurePath(path).suffix.lower())
