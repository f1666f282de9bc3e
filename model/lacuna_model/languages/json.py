"""JSON."""

import json
import re

from tree_sitter import Node

from lacuna_model.languages.language import KEY, Declarations, Language, Lexicon, Rules, StrictParsers, kinds
from lacuna_model.languages.predicates import COMMENTS, Predicate, text_matches

_LEXICON = Lexicon(
    heads=(b"", b'"x": ', b', "x": ', b", "),
    field=b'"x": 0',
    links=(b'"x"',),
    line_comment=(),
    block_comment=(),
    quotes=(b'"',),
    operand=b"0",
    body=b"",
    terminator=b"",
)
_JSON_PLACES = """
(document (_) @root)
(string) @line
"""


def _first_value(node: Node) -> bool:
    """Whether a node is the only value of a text; comments may be around it."""
    before = node.prev_named_sibling
    while before is not None and before.type in COMMENTS:
        before = before.prev_named_sibling
    return node.type in COMMENTS or before is None


_JSON_FITS: dict[str, Predicate] = {"root": _first_value, "line": text_matches(rb"[^\x00-\x1f]*")}
# A string of JSON, or a comment as some of its readers accept it.
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def _commented_json(text: str) -> object:
    """Parse JSON with comments, which are replaced with blanks."""
    return json.loads(_COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " " * len(match[0]), text))


_ENTRIES = ('"_": 0', '"_": 0,', ', "_": 0', "0", "0,", ", 0", "_", '"', ": 0", ": 0}", "0}", "0]", "]", "}")

JSON = Language(
    "json",
    (".json",),
    "tree_sitter_json",
    lexicon=_LEXICON,
    rules=Rules(_JSON_PLACES, _JSON_FITS, firm=frozenset(_JSON_FITS)),
    declarations=Declarations("string", {"pair": KEY}, kinds("object")),
    strict=StrictParsers((json.loads, _commented_json), ("", *_ENTRIES), 200_000),
)
