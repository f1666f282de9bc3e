"""TOML."""

import tomllib

from tree_sitter import Node

from lacuna_model.languages.language import Declarations, Language, Lexicon, Role, StrictParsers, kinds

_LEXICON = Lexicon(
    links=(b" = 0", b"]"),
    line_comment=(b"#",),
    block_comment=(),
    quotes=(b'"""', b"'''", b'"', b"'"),
    operand=b"0",
    body=b" = 0",
    terminator=b"",
)
MAX_DOTS = 1000  # in a line: the time of TOML's parser is quadratic in them


def _toml(text: str) -> object:
    """Parse TOML, unless a key may have so many parts that this takes seconds."""
    return tomllib.loads(text) if all(line.count(".") < MAX_DOTS for line in text.split("\n")) else None


def _table(_table: Node, key: Node) -> int:
    """The weight of a table, 0 for a dotted name: it may be part of each of several others."""
    return 0 if key.type == "dotted_key" else 1


_TOML_KEY = Role("", "key", 1)
_NEUTRAL = ("", "_", "_ = 0", " = 0", "0", '"', "]", "_]", "0]", "0}", "'")

TOML = Language(
    "toml",
    (".toml",),
    "tree_sitter_toml",
    lexicon=_LEXICON,
    declarations=Declarations(
        "bare_key quoted_key dotted_key",
        {"pair": _TOML_KEY, "table": Role("", "key", _table)},
        kinds("document table table_array_element inline_table"),
    ),
    strict=StrictParsers((_toml,), _NEUTRAL, 30_000),
)
