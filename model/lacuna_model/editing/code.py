"""The code of a text without its comments and its documentation."""

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError

# A line that is a comment in one of the usual notations.
COMMENT = re.compile(
    r"^\s*(?:#(?!(?:include|define|if|ifdef|ifndef|endif|else|elif|pragma|undef)\b|[!\[])|//|/\*|\*(?:\s|/|$)|--\s|;\s?\w|"
    r"<!--|%|\"\"\")"
)
# The fields in which grammars have what a node binds.
_BINDS = ("name", "left", "pattern", "alias", "declarator", "key", "parameter")
_COMPARES = re.compile(r"augmented|binary|compar|boolean|logical|infix|additive|multiplicative|range")
_NAME = re.compile(
    r"^(?!property_|field_|type_|package_|statement_|label)\w*identifier$|^(?:name|variable_name|constant)$"
)
# A line that brings names from elsewhere into a file, or says what the file belongs to.
BRINGS = re.compile(
    r"^\s*(?:import\b|from\s+\S+\s+import\b|package\s+[\w.]+;?\s*$|#\s*include\b|using\s+[\w.:= ]+;|"
    r"(?:pub\s+)?use\s.*;\s*$|require(?:_relative|_once)?[\s(]+['\"]|include(?:_once)?\s+\S+\s*$|namespace\s+[\w.\\]+|"
    r"(?:const|let|var)\s.*=\s*require\(|extern\s+crate\b|source\s+\S+\s*$|(?:\w+\s+)?\"[\w.-]+(?:/[\w.-]+)*\"\s*$)"
)


def code(text: bytes, language: Language | None) -> list[bytes] | None:
    """The tokens of a text but comments and documentation; without a grammar its lines but those of comments.

    None where the text cannot be parsed.
    """
    if language is None:
        return [line.strip() for line in text.splitlines() if line.strip() and not COMMENT.match(line.decode())]
    nodes = [*_nodes(text, language, _is_documentation)]
    return [b" ".join((node.text or b"").split()) for node in nodes if not node.children] if nodes else None


def bound(text: bytes, language: Language) -> set[str]:
    """The names that a text may give a meaning to: in definitions, parameters, loops, patterns and assignments."""
    found: set[str] = set()
    for node in _nodes(text, language):
        if _COMPARES.search(node.type):
            continue
        own = [child for field in _BINDS for child in node.children_by_field_name(field)]
        for one in (node, *own) if "parameter" in node.type else own:
            found.update(re.findall(r"\w+", (one.text or b"").decode(errors="replace")))
    return found


def used(text: bytes, language: Language) -> set[str]:
    """The names in the code of a text, but for members of other values."""
    found, before = set[str](), b""
    for node in _nodes(text, language):
        if not node.children:
            if _NAME.search(node.type) and before not in (b".", b"->", b"?.", b"::", b"&."):
                found.add((node.text or b"").decode(errors="replace"))
            before = node.text or b""
    return found


def _nodes(text: bytes, language: Language, without: Callable[[Node], bool] = lambda _: False) -> Iterator[Node]:
    """All nodes in the order of the text, but some; none where the text cannot be parsed."""
    try:
        left = [language.parser().parse(text).root_node]
    except UnparsableError:
        return
    while left:
        node = left.pop()
        if not without(node):
            yield node
            left += reversed(node.children)


def _is_documentation(node: Node) -> bool:
    """Whether a node is a comment, or a string that is a statement of its own."""
    alone = node.type == "expression_statement" and node.named_child_count == 1
    return "comment" in node.type or (alone and node.named_children[0].type == "string")
