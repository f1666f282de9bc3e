"""Languages of data: JSON, TOML and YAML, which strict parsers read in the end."""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import yaml
from tree_sitter import Node

from lacuna_model.languages.language import KEY, Declarations, Language, Lexicon, Role, Rules, StrictParsers, kinds
from lacuna_model.languages.predicates import COMMENTS, before_comments


def _first_value(node: Node) -> bool:
    """Whether a node is the only value of a text; comments may be around it."""
    return node.type in COMMENTS or before_comments(node) is None


# A string of JSON, or a comment as some of its readers accept it.
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def _commented_json(text: str) -> object:
    """Parse JSON with comments, which are replaced with blanks."""
    return json.loads(_COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " " * len(match[0]), text))


_JSON_NEUTRAL = ('"_": 0', '"_": 0,', ', "_": 0', "0", "0,", ", 0", "_", '"', ": 0", ": 0}", "0}", "0]", "]", "}")

JSON = Language(
    "json",
    (".json",),
    "tree_sitter_json",
    lexicon=Lexicon(
        heads=(b"", b'"x": ', b', "x": ', b", "),
        links=(b'"x"',),
        line_comment=(),
        block_comment=(),
        quotes=(b'"',),
        operand=b"0",
        body=b"",
        terminator=b"",
    ),
    rules=Rules("(document (_) @root)", {"root": _first_value}, firm=frozenset({"root"})),
    declarations=Declarations("string", {"pair": KEY}, kinds("object")),
    strict=StrictParsers((json.loads, _commented_json), ("", *_JSON_NEUTRAL), 200_000),
)


MAX_DOTS = 1000  # in a line: the time of TOML's parser is quadratic in them


def _toml(text: str) -> object:
    """Parse TOML, unless a key may have so many parts that this takes seconds."""
    return tomllib.loads(text) if all(line.count(".") < MAX_DOTS for line in text.split("\n")) else None


_TOML_NEUTRAL = ("", "_", "_ = 0", " = 0", "0", '"', "]", "_]", "0]", "0}", "'")

TOML = Language(
    "toml",
    (".toml",),
    "tree_sitter_toml",
    lexicon=Lexicon(
        links=(b" = 0", b"]"),
        line_comment=(b"#",),
        block_comment=(),
        quotes=(b'"""', b"'''", b'"', b"'"),
        operand=b"0",
        body=b" = 0",
        terminator=b"",
    ),
    strict=StrictParsers((_toml,), _TOML_NEUTRAL, 30_000),
)


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "tag:yaml.org,2002:merge"

# What the scanner of tree-sitter-yaml 0.7.2 cannot hold (issues 48 and 49 of tree-sitter-grammars/tree-sitter-yaml): it
# writes four bytes a level into 1,024 without looking, at most two levels for a column, and counts lines in 16 bits.
_MAX_COLUMNS = 100
_MAX_LINES = 32_768
# The column of a line's first word, and of what follows a mark that may open a block.
_BLOCK = re.compile(rb"^[ \t]*(?=\S)|[-?:][ \t]+(?=\S)", re.MULTILINE)
# In a text that is too deep, some line begins in or has as many marks as half of the columns.
_SUSPECT = re.compile(rb"^(?:[ \t]{49}|(?>[^\n]*?[-?:][ \t]+){49})", re.MULTILINE)


def _breaks_scanner(text: bytes) -> bool:
    """Whether blocks are open at more columns, or the text has more lines, than the scanner can hold."""
    if text.count(b"\n") >= _MAX_LINES:
        return True
    return _SUSPECT.search(text) is not None and any(columns > _MAX_COLUMNS for columns in _open_columns(text))


def _open_columns(text: bytes) -> Iterator[int]:
    """Yield at how many columns blocks may be open, at each place where one may begin."""
    columns: list[int] = []
    begin = 0
    for found in _BLOCK.finditer(text):
        if not found[0].strip():  # a line begins
            begin = found.start()
        column = found.end() - begin
        while columns and columns[-1] >= column:
            columns.pop()
        columns.append(column)
        yield len(columns)


class _Unmerged(_LOADER):  # type: ignore[misc]
    """Checks merge keys (``<<``) as PyYAML does and merges nothing: merged mappings may grow without bounds."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for value in (value for key, value in node.value if key.tag == _MERGE):
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            if not all(isinstance(one, yaml.MappingNode) for one in merged):
                raise yaml.constructor.ConstructorError(None, None, "not a mapping to merge", value.start_mark)
            self.construct_object(value, deep=True)
        node.value = [(key, value) for key, value in node.value if key.tag != _MERGE]
        super().flatten_mapping(node)


def _without_value(loader: Any, suffix: str, node: yaml.Node) -> None:
    """The value of a tag that only an application knows."""


for _tag in ("!", "tag:yaml.org,2002:python/"):
    _Unmerged.add_multi_constructor(_tag, _without_value)
_Unmerged.add_constructor("tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node))


def _yaml_documents(text: str) -> object:
    return list(yaml.load_all(text, _Unmerged))


def _yaml_stream(text: str) -> object:
    """Parse several documents without making their values, which only their reader may know."""
    return list(yaml.compose_all(text, _LOADER))


_YAML_NEUTRAL = ("", "_", "_: 0", ": 0", " 0", "- 0", '"', "]", "0]", "}", "0}", "'", "{}")

YAML = Language(
    "yaml",
    (".yaml", ".yml"),
    "tree_sitter_yaml",
    aliases=("yml",),
    lexicon=Lexicon(
        links=(b": x", b":"), line_comment=(b"#",), block_comment=(), operand=b"x", body=b": x", terminator=b""
    ),
    declarations=Declarations(
        "flow_node",
        {"block_mapping_pair": KEY, "flow_pair": Role("key", "key", until="flow_mapping")},
        kinds("block_mapping flow_mapping"),
    ),
    strict=StrictParsers((_yaml_documents, _yaml_stream), _YAML_NEUTRAL, 20_000),
    breaks_parser=_breaks_scanner,
)
