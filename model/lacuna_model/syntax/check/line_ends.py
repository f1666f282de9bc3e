"""Line ends that Go reads as semicolons and that its tree-sitter grammar reads as blanks.

A line ends a statement if its last token may end one. A brace on the next line, a list without its last comma and an
operator that comes too late are therefore errors, which completions tend to contain.
"""

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node, Tree

from lacuna_model.syntax.check.error_set import Fault

LINE_END = re.compile(rb"[\w\x80-\xff)\]}\"'`+-](?=[ \t\r]*(//[^\n]*)?\n)")
NEXT_TOKEN = re.compile(rb"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
# Nodes whose parts are separated by semicolons.
SERIES = frozenset(
    {
        "source_file",
        "block",
        "statement_list",
        "import_spec_list",
        "const_declaration",
        "var_spec_list",
        "type_declaration",
        "field_declaration_list",
        "interface_type",
        "expression_case",
        "type_case",
        "communication_case",
        "default_case",
    }
)
SWITCHES = frozenset({"expression_switch_statement", "type_switch_statement", "select_statement"})
# Nodes that contain plain line ends, and the unnamed tokens that end a statement.
PROSE = frozenset({"comment", "raw_string_literal", "raw_string_literal_content"})
LAST_TOKENS = frozenset({")", "]", "}", '"', "`", "++", "--", "return", "break", "continue", "fallthrough"})


def line_end_faults(tree: Tree, text: bytes, spans: Sequence[tuple[int, int]] | None) -> frozenset[Fault]:
    """Return the line ends in some byte ranges, or everywhere, that are semicolons where none may stand."""
    return frozenset(
        Fault("LINE END", line_end.start(), after)
        for start, stop in (spans if spans is not None else [(0, len(text))])
        for line_end, after in _line_ends(text, start, stop)
        if not _may_end(tree.root_node, text, line_end.start(), after) and _ends(tree.root_node, line_end)
    )


def _line_ends(text: bytes, start: int, stop: int) -> Iterator[tuple[re.Match[bytes], int]]:
    """The last character of each line, including the line before a range, and the offset of the next token."""
    while start and text[start - 1 : start].isspace():
        start -= 1
    newline = text.find(b"\n", stop)
    for found in LINE_END.finditer(text, max(start - 1, 0), newline + 1 if newline >= 0 else len(text)):
        following = NEXT_TOKEN.match(text, found.end())
        if following is not None and following.end() < len(text):
            yield found, following.end()


def _may_end(root: Node, text: bytes, last: int, after: int) -> bool:
    """Whether a semicolon may stand between two tokens."""
    around = root.descendant_for_byte_range(last, after + 1)
    if around is None or around.type in SERIES or around.type in PROSE:
        return True
    return around.type in SWITCHES and text[after : after + 1] != b"{"


def _ends(root: Node, line_end: re.Match[bytes]) -> bool:
    """Whether a line's last token may end a statement, so that Go reads a semicolon there."""
    if line_end.start(1) >= 0:  # the apparent comment may be part of a string
        comment = root.descendant_for_byte_range(*line_end.span(1))
        if comment is None or comment.type != "comment":
            return False
    token = root.descendant_for_byte_range(*line_end.span())
    if token is None or token.type in PROSE:
        return False
    return token.is_named or token.type in LAST_TOKENS
