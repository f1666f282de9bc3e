"""The code of a text without its comments and its documentation."""

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError

Span = tuple[int, int]

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


def code(text: bytes, language: Language | None, span: Span | None = None) -> list[bytes] | None:
    """The tokens of a text, or of a span of it, but comments and documentation.

    Without a grammar its lines but those of comments. None where the text cannot be parsed.
    """
    start, end = span or (0, len(text))
    if language is None:
        lines = text[start:end].splitlines()
        return [line.strip() for line in lines if line.strip() and not COMMENT.match(line.decode())]
    nodes = [*_nodes(text, language, (start, end), _is_documentation)]
    leaves = [node for node in nodes if not node.children and start <= node.start_byte]
    return [b" ".join((node.text or b"").split()) for node in leaves] if nodes else None


def bound(text: bytes, language: Language, span: Span) -> set[str]:
    """The names to which a span may give a meaning: in definitions, parameters, loops, patterns and assignments."""
    found: set[str] = set()
    for node in _nodes(text, language, span):
        if _COMPARES.search(node.type):
            continue
        own = [child for field in _BINDS for child in node.children_by_field_name(field)]
        own = [child for child in own if child.start_byte >= span[0]]
        for one in (node, *own) if "parameter" in node.type and node.start_byte >= span[0] else own:
            found.update(re.findall(r"\w+", (one.text or b"").decode(errors="replace")))
    return found


def used(text: bytes, language: Language, span: Span) -> set[str]:
    """The names in the code of a span, but for members of other values."""
    found, before = set[str](), b""
    for node in _nodes(text, language, span):
        if not node.children and node.start_byte >= span[0]:
            if _NAME.search(node.type) and before not in (b".", b"->", b"?.", b"::", b"&."):
                found.add((node.text or b"").decode(errors="replace"))
            before = node.text or b""
    return found


def _nodes(
    text: bytes, language: Language, span: Span, without: Callable[[Node], bool] = lambda _: False
) -> Iterator[Node]:
    """The nodes of a span and those around it, in the order of the text, but some; none where it cannot be parsed."""
    try:
        left = [language.parser().parse(text).root_node]
    except UnparsableError:
        return
    while left:
        node = left.pop()
        if node.start_byte < span[1] and node.end_byte > span[0] and not without(node):
            yield node
            left += reversed(node.children)


def _is_documentation(node: Node) -> bool:
    """Whether a node is a comment, or a string that is a statement of its own."""
    alone = node.type == "expression_statement" and node.named_child_count == 1
    return "comment" in node.type or (alone and node.named_children[0].type == "string")
