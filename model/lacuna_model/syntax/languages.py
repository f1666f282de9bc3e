"""The registry of languages: extensions, grammar wheel, and the words a minimal completion is made of."""

import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath

import tree_sitter


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What the scanner and the minimal completions need to know of a language's surface.

    ``operand`` is the shortest expression, ``statement`` the shortest statement to write where one is due,
    ``filler`` a statement that may stand anywhere at the top level, ``body`` what turns an open
    compound header into a statement. ``ends`` are the words that close keyword blocks, ``links``
    what an unfinished expression of several words may lack.
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
    ends: tuple[bytes, ...] = ()
    links: tuple[bytes, ...] = ()
    columns: bool = False


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
_C = Lexicon(headers=_C_HEADERS)
_SCRIPT = Lexicon(headers=_C_HEADERS | {b"function"}, quotes=(b'"', b"'", b"`"))
_GO = Lexicon(headers=_C_HEADERS | {b"func"}, quotes=(b'"', b"'", b"`"), terminator=b"")
_RUST = Lexicon(headers=_C_HEADERS | {b"fn", b"impl", b"match", b"loop"}, quotes=(b'"',))
_PYTHON = Lexicon(
    line_comment=_HASH,
    block_comment=(),
    quotes=(b'"""', b"'''", b'"', b"'"),
    columns=True,
    links=(b" in x", b" else x", b"=x"),
    statement=b"pass",
    filler=b"pass",
    body=b": pass",
    terminator=b"",
    headers=_PYTHON_HEADERS,
)
_BASH = Lexicon(
    line_comment=_HASH,
    block_comment=(),
    quotes=(b'"', b"'", b"`"),
    statement=b":",
    body=b" :",
    terminator=b"",
    ends=(b"fi", b"done", b"esac", b"then :; fi", b"do :; done"),
)
_RUBY = Lexicon(
    line_comment=_HASH, block_comment=(), quotes=(b'"', b"'", b"`"), body=b"", terminator=b"", ends=(b"end",)
)
_LUA = Lexicon(
    line_comment=(b"--",),
    block_comment=((b"--[[", b"]]"),),
    operand=b"x",
    body=b"",
    terminator=b"",
    ends=(b"end", b"then end", b"do end", b"() end"),
)
_PHP = Lexicon(line_comment=(b"//", b"#"), operand=b"$x", headers=_C_HEADERS | {b"function", b"foreach"})
_JSON = Lexicon(line_comment=(), block_comment=(), quotes=(b'"',), operand=b"0", body=b"", terminator=b"")
_CSS = Lexicon(line_comment=(), operand=b"x", statement=b"x:x;")
_MARKUP = Lexicon(
    line_comment=(), block_comment=((b"<!--", b"-->"),), brackets=(b"<>",), body=b"", terminator=b"", operand=b"x"
)
_YAML = Lexicon(line_comment=_HASH, block_comment=(), operand=b"x", body=b": x", terminator=b"")
_TOML = Lexicon(
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
        lexicon=_SCRIPT,
    ),
    Language("tsx", (".tsx",), "tree_sitter_typescript", "language_tsx", aliases=("typescriptreact",), lexicon=_SCRIPT),
    Language("go", (".go",), "tree_sitter_go", aliases=("golang",), lexicon=_GO),
    Language("rust", (".rs",), "tree_sitter_rust", aliases=("rs",), lexicon=_RUST),
    Language("java", (".java",), "tree_sitter_java", lexicon=_C),
    Language("c", (".c", ".h"), "tree_sitter_c", lexicon=_C),
    Language(
        "cpp", (".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx"), "tree_sitter_cpp", aliases=("c++", "cxx"), lexicon=_C
    ),
    Language("json", (".json",), "tree_sitter_json", splits=False, lexicon=_JSON),
    Language("bash", (".sh", ".bash"), "tree_sitter_bash", aliases=("shellscript", "sh", "shell"), lexicon=_BASH),
    Language("csharp", (".cs",), "tree_sitter_c_sharp", aliases=("c#", "c_sharp", "cs"), lexicon=_C),
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
