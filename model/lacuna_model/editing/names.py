"""What a grammar tells of a part of a file: the names that it defines, binds and uses, and its code without comments.

Definitions are functions, types, members, keys and sections, with what they are called in. A grammar tells them by the
kinds and fields of its nodes, which are alike in all of them. Without a grammar the lines tell: ``def name(``,
``[section]``, ``key = value``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.text.lines import line_starts, lines_of

Span = tuple[int, int]
# A line that is a comment in one of the usual notations.
COMMENT = re.compile(
    r"^\s*(?:#(?!(?:include|define|if|ifdef|ifndef|endif|else|elif|pragma|undef)\b|[!\[])|//|/\*|\*(?:\s|/|$)|--\s|;\s?\w|"
    r"<!--|%|\"\"\")"
)
# A line that brings names from elsewhere into a file, or says what the file belongs to.
BRINGS = re.compile(
    r"^\s*(?:import\b|from\s+\S+\s+import\b|package\s+[\w.]+;?\s*$|#\s*include\b|using\s+[\w.:= ]+;|"
    r"(?:pub\s+)?use\s.*;\s*$|require(?:_relative|_once)?[\s(]+['\"]|include(?:_once)?\s+\S+\s*$|namespace\s+[\w.\\]+|"
    r"(?:const|let|var)\s.*=\s*require\(|extern\s+crate\b|source\s+\S+\s*$|(?:\w+\s+)?\"[\w.-]+(?:/[\w.-]+)*\"\s*$)"
)
_DEFINES = re.compile(
    r"(?:^|_)(?:definition|declaration|item|spec|signature|declarator|element|variant|constant|specifier|alias|def|pair|"
    r"assignment|method|class|module|list|body|table|entry|rule_set)$|^type_alias_statement$"
)
_DEFINES_NOTHING = re.compile(
    r"parameter|argument|import|^use_|using|package|namespace_use|accessor|export_spec|macro_rule|"
    r"(?:function|pointer|array|reference|parenthesized)_declarator|augmented|enum_specifier_list"
)
_FUNCTION = re.compile(r"function|method|constructor|destructor|lambda|closure|arrow|accessor|^initializer")
_FIELDS = ("name", "left", "key")
_DECLARES = ("function_definition", "declaration", "field_declaration", "type_definition")
_FIRST = ("pair", "table", "table_array_element", "rule_set", "enum_entry", "const_element", "variable_declaration")
# Definitions where no grammar is known.
_LINES = (
    re.compile(
        r"^[ \t]*(?:[\w@]+[ \t]+){0,3}?(?:def|class|func|function|fn|fun|sub|proc|procedure|module|struct|interface|"
        r"trait|protocol|extension|object|table|view|resource|defmodule|defp)\b[ \t]+(?:if not exists[ \t]+)?"
        r"[\"'`]?([\w.:!?]+)[\"'`]?[ \t]*(?=[({<:=\n]|do\b|as\b|extends\b|$)",
        re.IGNORECASE,
    ),
    re.compile(r"^[ \t]*\[+([^\[\]\n]+)\]+[ \t]*$"),
    re.compile(r"^[ \t]*(?:export[ \t]+)?[\"']?([A-Za-z_][\w.\-/]*)[\"']?[ \t]*(?:=(?!=)|:(?=[ \t\n]|$)|:?=)"),
)
_SECTION, _KEY = 1, 2
# A text without a grammar is a configuration where at least this share of its lines are keys and sections.
_KEYS_SHARE = 0.4
_COMMENT = re.compile(r"^\s*(?:#|;|//|--|!)")


@dataclass(frozen=True, slots=True)
class Name:
    """A name, the names of the definitions around it, and its own first line and code.

    It is ``local`` in a function that reaches beyond the part, up to byte ``until``.
    """

    text: str
    around: tuple[str, ...] = ()
    head: str = ""
    local: bool = False
    until: int = 0
    code: str = ""


def is_configuration(text: str) -> bool:
    """Whether a text without a grammar has mostly keys and sections."""
    lines = [line for line in text.splitlines() if line.strip() and not _COMMENT.match(line)]
    keys = sum(any(_LINES[kind].match(line) for kind in (_SECTION, _KEY)) for line in lines)
    return bool(lines) and keys >= _KEYS_SHARE * len(lines) and not any(line.rstrip().endswith(".") for line in lines)


def names(text: bytes, start: int, end: int, language: Language | None, *, keyed: bool = False) -> list[Name]:
    """The names that the bytes ``start`` to ``end`` of a text define, in order.

    What is local to a function within these bytes is none of them. Without a grammar, a text that is ``keyed`` defines
    keys and sections.
    """
    if language is not None:
        root = _root(text, language)
        return [*_in_tree(root, start, end)] if root is not None else []
    return _in_lines(text, start, end, keyed=keyed)


def _root(text: bytes, language: Language) -> Node | None:
    """The root of a text's tree; None where the text cannot be parsed."""
    try:
        return language.parser().parse(text).root_node
    except UnparsableError:
        return None


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _in_tree(root: Node, start: int, end: int) -> Iterator[Name]:
    """The names of definitions that begin within the bytes; a function that reaches beyond them is kept beside them."""
    left: list[tuple[Node, tuple[str, ...], Node | None]] = [(root, (), None)]
    while left:
        node, around, function = left.pop()
        own, owner = [*_own(node)], _owner(node)
        if start <= node.start_byte < end:
            head, code = (" ".join(text.split()) for text in (_text(node).partition("\n")[0], _text(node)))
            until = function.end_byte if function is not None else 0
            yield from (Name(name, (*around, *owner), head, function is not None, until, code) for name in own)
        around = (*around, *(own[:1] or owner))
        inside = start <= node.start_byte and node.end_byte <= end
        inner = [one for one in node.named_children if one.end_byte > start and one.start_byte < end]
        for child in reversed(inner):
            body = _is_body(node, child)
            if not (body and inside):  # what a function within the bytes declares is its own
                left.append((child, around, node if body else function))


def _is_body(node: Node, child: Node) -> bool:
    """Whether a node is a function and its child the body."""
    if not _FUNCTION.search(node.type):
        return False
    return "body" in child.type or "block" in child.type or child == node.child_by_field_name("body")


def _owner(node: Node) -> list[str]:
    """The type that a node gives members to, without being its definition."""
    field = {"impl_item": "type", "method_declaration": "receiver"}.get(node.type, "")
    owner = node.child_by_field_name(field) if field else None
    return re.findall(r"\w+", _text(owner))[-1:] if owner is not None else []


def _own(node: Node) -> Iterator[str]:
    """The names that a node defines itself."""
    if not _DEFINES.search(node.type) or _DEFINES_NOTHING.search(node.type):
        return
    if node.type.endswith("specifier") and node.child_by_field_name("body") is None:
        return  # a type that is only used
    found = next((named for field in _FIELDS if (named := node.children_by_field_name(field))), [])
    if not found and node.type in _DECLARES:
        found = [leaf for one in node.children_by_field_name("declarator") if (leaf := _declared(one)) is not None]
    if not found and node.type in _FIRST:
        plain = node.type != "variable_declaration"
        found = [one for one in node.named_children[:1] if plain or one.type == "identifier"]
    for one in found:
        text = _text(one).strip("\"'`$ ")
        if text and "\n" not in text:
            yield text.rpartition("::")[2]


def _declared(node: Node) -> Node | None:
    """The name in a declarator of C; None where the declarator names itself."""
    while (inner := node.child_by_field_name("declarator")) is not None:
        node = inner
    return None if node.child_by_field_name("name") is not None and not node.type.startswith("qualified") else node


def _in_lines(text: bytes, start: int, end: int, *, keyed: bool) -> list[Name]:
    whole = text.decode(errors="replace")
    first, last = (len(line_starts(text[:place])) - 1 for place in (start, end))
    found, section = list[Name](), ""
    for row, line in enumerate(lines_of(whole)):
        kinds = range(len(_LINES)) if keyed else (0,)
        kind, match = next(((kind, match) for kind in kinds if (match := _LINES[kind].match(line))), (0, None))
        if match is None or _COMMENT.match(line):
            continue
        name = match[1].strip()
        within = (section,) if kind == _KEY else ()
        section = name if kind == _SECTION else section
        if first <= row < last or (row == last and not text[:end].endswith((b"\r", b"\n"))):
            found.append(Name(name, within, line.strip()))
    return found


def code(text: bytes, language: Language | None, span: Span | None = None) -> list[bytes] | None:
    """The tokens of a text, or of a span of it, but comments and documentation.

    Without a grammar its lines but those of comments. None where the text cannot be parsed.
    """
    start, end = span or (0, len(text))
    if language is None:
        lines = text[start:end].splitlines()
        return [line.strip() for line in lines if line.strip() and not COMMENT.match(line.decode())]
    if (root := _root(text, language)) is None:
        return None
    left, found = [root], list[bytes]()
    while left:
        node = left.pop()
        if node.start_byte < end and node.end_byte > start and not is_documentation(node):
            left += reversed(node.children)
            if not node.children and start <= node.start_byte:
                found.append(b" ".join((node.text or b"").split()))
    return found


def is_documentation(node: Node) -> bool:
    """Whether a node is a comment, or a string that is a statement of its own."""
    alone = node.type == "expression_statement" and node.named_child_count == 1
    return "comment" in node.type or (alone and node.named_children[0].type == "string")
