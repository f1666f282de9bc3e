"""Adds the annotations that a function lacks, read in Python's trees."""

import re
from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from lacuna_model.core.params import Region
from lacuna_model.syntax.faults import CLAUSES
from lacuna_server.refactor.places.source import Source, ancestors, walk
from lacuna_server.refactor.rewriting.refactoring import Found
from lacuna_server.refactor.rewriting.rewrite import Part, Rewrite

SCOPES = frozenset({"function_definition", "class_definition", "lambda"})
IMPORTS = frozenset({"import_statement", "import_from_statement", "future_import_statement"})


def nodes(root: Node, *types: str) -> Iterator[Node]:
    """Yields the nodes of these types in a tree, in the order of the text."""
    return (node for node in walk(root) if node.type in types)


def _own_nodes(function: Node, *types: str) -> Iterator[Node]:
    """Yields the nodes of these types in a function's body, without those in nested functions and classes."""
    body = function.child_by_field_name("body")
    found = walk(body, lambda node: node.type not in SCOPES) if body is not None else ()
    return (node for node in found if node.type in types)


def text(node: Node | None) -> str:
    """Returns the text of a node; empty for None."""
    return "" if node is None or node.text is None else node.text.decode()


def name(node: Node) -> str:
    """Returns the text of a node's ``name`` field."""
    return text(node.child_by_field_name("name"))


def head_imports(source: Source) -> list[Node]:
    """Returns the imports at the beginning of a module."""
    found: list[Node] = []
    for node in source.tree.root_node.named_children:
        if node.type in IMPORTS:
            found.append(node)
        elif node.type != "comment" and not is_docstring(node):
            break
    return found


def is_docstring(node: Node) -> bool:
    """Returns whether a statement is only a string."""
    return (
        node.type == "expression_statement" and node.named_child_count == 1 and node.named_children[0].type == "string"
    )


LITERALS = {
    "integer": "int",
    "float": "float",
    "string": "str",
    "concatenated_string": "str",
    "true": "bool",
    "false": "bool",
    "list": "list",
    "dictionary": "dict",
    "set": "set",
    "tuple": "tuple",
}
BUILTINS = ("int", "str", "bool", "float", "bytes", "object")
MAX_NAMES = 40
MAX_TOKENS = 16
SPLATS = ("list_splat_pattern", "dictionary_splat_pattern")


def find(sources: Sequence[Source], settings: Mapping[str, str]) -> Iterator[Found]:
    """Yields a rewrite for every parameter and every return value without an annotation."""
    for source in sources:
        classes = [
            (name(node), node.end_byte) for node in source.tree.root_node.children if node.type == "class_definition"
        ]
        lazy = any("annotations" in text(node) for node in nodes(source.tree.root_node, "future_import_statement"))
        imported = _imported(source) if lazy else []
        for function in nodes(source.tree.root_node, "function_definition"):
            known = [defined for defined, end in classes if lazy or end <= function.start_byte]
            hole = _hole([*BUILTINS, *known, *imported][:MAX_NAMES])
            yield from ((source, rewrite) for rewrite in _signature(function, hole))


def _signature(function: Node, hole: Region) -> Iterator[Rewrite]:
    parameters = function.child_by_field_name("parameters")
    if parameters is None:
        return
    bound = "staticmethod" not in _decorators(function) and _is_method(function)
    for index, parameter in enumerate(one for one in parameters.named_children if one.type != "comment"):
        if not (bound and index == 0):
            yield from _parameter(parameter, name(function), hole)
    if function.child_by_field_name("return_type") is None:
        returns = _returns(function, hole)
        if returns:
            at = parameters.end_byte
            yield Rewrite(at, at, (" -> ", *returns), f"return type of {name(function)}")


def _parameter(parameter: Node, function: str, hole: Region) -> Iterator[Rewrite]:
    label = f"{text(parameter).split('=')[0].strip()} of {function}"
    if parameter.type == "identifier" or parameter.type in SPLATS:
        yield Rewrite(parameter.end_byte, parameter.end_byte, (": ", hole), label)
    elif parameter.type == "default_parameter":
        named, value = parameter.child_by_field_name("name"), parameter.child_by_field_name("value")
        assert named is not None
        assert value is not None
        if any(child.type == "comment" for child in parameter.children):  # keeps the layout around "="
            yield Rewrite(named.end_byte, named.end_byte, (": ", *_type_of(value, hole)), label)
        else:
            yield Rewrite(named.end_byte, value.start_byte, (": ", *_type_of(value, hole), " = "), label)


def _type_of(value: Node, hole: Region) -> tuple[Part, ...]:
    """Returns the type of a parameter, by its default."""
    if value.type == "none":
        return (hole, " | None")
    if value.type in ("string", "concatenated_string") and text(value).lower().startswith(("b", "rb")):
        return ("bytes",)
    return (LITERALS[value.type],) if value.type in LITERALS else (hole,)


def _returns(function: Node, hole: Region) -> tuple[Part, ...]:
    """Returns the return type; empty for a generator, because the module may not have imported its type."""
    if any(True for _ in _own_nodes(function, "yield")):
        return ()
    returned = [node.named_children for node in _own_nodes(function, "return_statement")]
    valued = [bool(values) and values[0].type != "none" for values in returned]
    body = function.child_by_field_name("body")
    if any(valued):
        return (hole,) if all(valued) and not _is_left(body) else (hole, " | None")
    last = body.named_children[-1] if body is not None and body.named_children else None
    is_open = last is not None and (last.type == "raise_statement" or text(last) == "...")
    return (hole,) if is_open or "abstractmethod" in _decorators(function) else ("None",)


def _is_left(node: Node | None) -> bool:
    """Returns whether what stands behind a statement, a clause or a block is reached."""
    if node is None:
        return True
    inner = [one for one in node.named_children if one.type == "block" or one.type in CLAUSES]
    match node.type:
        case "return_statement" | "raise_statement":
            return False
        case "block":
            return all(map(_is_left, node.named_children))
        case "if_statement":
            return inner[-1].type != "else_clause" or any(map(_is_left, inner))
        case "while_statement":
            is_endless = text(node.child_by_field_name("condition")) in ("True", "1")
            return not is_endless or any(True for _ in _own_nodes(node, "break_statement"))
        case "try_statement":
            left = [(one.type, _is_left(one)) for one in inner]
            is_done = all(is_left for kind, is_left in left if kind in ("block", "else_clause"))
            is_caught = any(is_left for kind, is_left in left if kind.startswith("except"))
            return (is_done or is_caught) and ("finally_clause", False) not in left
        case "match_statement":
            cases = [one for block in inner for one in block.named_children if one.type == "case_clause"]
            return any(map(_is_left, cases)) or not any(text(one).startswith("case _:") for one in cases)
        case "with_statement" | "case_clause":
            return any(map(_is_left, inner))
        case kind:
            return kind not in CLAUSES or any(map(_is_left, inner))


def _hole(names: Sequence[str]) -> Region:
    plain = "|".join(re.escape(known) for known in dict.fromkeys(names))
    one = f"({plain})"
    regex = rf"({plain}|list\[{one}\]|set\[{one}\]|dict\[{one}, {one}\]|tuple\[{one}(, {one}){{0,2}}\])"
    return Region(0, 0, max_tokens=MAX_TOKENS, single_line=True, regex=regex)


def _imported(source: Source) -> list[str]:
    """Returns the imported names that are written like class names."""
    found = []
    for statement in nodes(source.tree.root_node, "import_from_statement"):
        for child in statement.children_by_field_name("name"):
            alias = child.child_by_field_name("alias")
            found.append(text(alias if alias is not None else child))
    return [imported for imported in found if re.fullmatch(r"[A-Z]\w*[a-z]\w*", imported)]


def _is_method(function: Node) -> bool:
    """Returns whether a function is directly in a class."""
    kinds = (node.type for node in ancestors(function) if node.type in ("class_definition", "function_definition"))
    return next(kinds, "") == "class_definition"


def _decorators(function: Node) -> str:
    parent = function.parent
    if parent is None or parent.type != "decorated_definition":
        return ""
    return " ".join(text(child) for child in parent.children if child.type == "decorator")
