"""The recipe ``parameter``: adds a parameter to a Python function, and passes it from its callers.

Callers are found by the function's name. They pass the given ``value``, else their own parameter of that name, else an
expression that the model fills. If the parameter has a default and there is no ``value``, they stay as they are.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_server.refactor.places.source import Source, ancestors
from lacuna_server.refactor.recipes.annotations import name, nodes, text
from lacuna_server.refactor.rewriting.refactoring import Found
from lacuna_server.refactor.rewriting.rewrite import LeftOut, Part, Rewrite, first_line

# An expression without a top-level comma: the fill must not become two arguments.
EXPRESSION = (
    r"""[\w.]+(\([^()\n]*\))?|"[^"\\\n]*"|'[^'\\\n]*'|-?[0-9]+(\.[0-9]+)?|\[[^\[\]\n]*\]|\([^()\n]*\)|\{[^{}\n]*\}"""
)
HOLE = Region(0, 0, max_tokens=24, single_line=True, regex=EXPRESSION)
SETTINGS = {
    "function": "the name of the function, or Class.name",
    "parameter": "as in the definition: 'timeout: float' or 'timeout: float = 10'",
    "value": "what callers pass; by default, the model chooses",
}


def find(sources: Sequence[Source], settings: Mapping[str, str]) -> Iterator[Found]:
    """Yields the rewrites of the definition and of its callers.

    Raises RequestError for invalid settings, and where there is not exactly one such definition.
    """
    wanted, declared = settings.get("function", ""), settings.get("parameter", "")
    if not wanted or not declared:
        raise RequestError("the recipe parameter needs the settings function=NAME and parameter='NAME: TYPE'")
    parameter, has_default = _declared(declared)
    source, function = _definition(sources, wanted)
    yield source, _widened(source, function, declared, parameter, has_default)
    value = settings.get("value", "")
    try:
        ast.parse(value or "None", mode="eval")
    except SyntaxError as error:
        raise RequestError(f"value={value} is not a Python expression") from error
    if has_default and not value:
        return
    for caller in sources:
        for call in nodes(caller.tree.root_node, "call"):
            item = _passed(call, wanted.rpartition(".")[2], parameter, value, function)
            if item is not None:
                yield caller, item


def _declared(declared: str) -> tuple[str, bool]:
    """Returns the name of the parameter, and whether it has a default. Raises RequestError where it is invalid."""
    try:
        arguments = ast.parse(f"def _(*, {declared}): pass").body[0].args  # type: ignore[attr-defined]  # a def has them
    except SyntaxError as error:
        raise RequestError(f"parameter={declared} is not a Python parameter") from error
    if len(arguments.kwonlyargs) != 1 or arguments.kwarg:
        raise RequestError(f"parameter={declared} is not a single Python parameter")
    return arguments.kwonlyargs[0].arg, arguments.kw_defaults[0] is not None


def _definition(sources: Sequence[Source], wanted: str) -> tuple[Source, Node]:
    owner, _, plain = wanted.rpartition(".")
    found = [
        (source, node)
        for source in sources
        for node in nodes(source.tree.root_node, "function_definition")
        if name(node) == plain and (not owner or owner == _owner(node))
    ]
    if len(found) != 1:
        where = ", ".join(f"{source.path}:{node.start_point.row + 1}" for source, node in found[:5])
        raise RequestError(
            f"several functions are called {wanted}: {where}; use Class.name"
            if found
            else f"no function is called {wanted}"
        )
    return found[0]


def _owner(function: Node) -> str:
    return next((name(node) for node in ancestors(function) if node.type == "class_definition"), "")


def _widened(source: Source, function: Node, declared: str, parameter: str, has_default: bool) -> Rewrite:
    """Adds the parameter after the last one but before ``**``; keyword-only where it would follow a default."""
    parameters = function.child_by_field_name("parameters")
    assert parameters is not None
    own = [child for child in parameters.named_children if child.type != "comment"]
    if any(_parameter_name(child) == parameter for child in own):
        raise RequestError(f"{name(function)} already has a parameter {parameter}")
    label = f"{parameter} of {name(function)}"
    named = [child for child in own if child.type != "dictionary_splat_pattern" and not text(child).startswith("**")]
    starred = any(text(child).startswith("*") for child in named)
    optional = any(child.type in ("default_parameter", "typed_default_parameter") for child in named)
    added = declared if has_default or starred or not optional else f"*, {declared}"
    if named:
        at = named[-1].end_byte
        return Rewrite(at, at, (f", {added}",), label)
    at = parameters.start_byte + 1
    return Rewrite(at, at, (added + (", " if own else ""),), label)


def _parameter_name(parameter: Node) -> str:
    if parameter.type == "typed_parameter":
        return text(parameter.named_children[0]).lstrip("*")
    return name(parameter) or text(parameter).lstrip("*")


def _passed(call: Node, function: str, parameter: str, value: str, definition: Node) -> Rewrite | LeftOut | None:
    """Adds the argument to a call. Returns None for a call of another function or one that passes it already."""
    called = text(call.child_by_field_name("function"))
    arguments = call.child_by_field_name("arguments")
    if called.rpartition(".")[2].strip() != function or arguments is None:
        return None
    if arguments.type != "argument_list":
        return LeftOut(call.start_byte, "the argument is a generator without parentheses; add them first")
    own = [child for child in arguments.named_children if child.type != "comment"]
    if any(name(child) == parameter for child in own if child.type == "keyword_argument"):
        return None
    if any(child.type == "dictionary_splat" for child in own):
        return LeftOut(call.start_byte, f"the call may already pass {parameter} in **")
    at = own[-1].end_byte if own else arguments.start_byte + 1
    argument: Part = value or (parameter if _in_scope(call, parameter, definition) else "") or HOLE
    return Rewrite(at, at, (", " if own else "", f"{parameter}=", argument), first_line(text(call)))


def _in_scope(call: Node, parameter: str, definition: Node) -> bool:
    """Returns whether a function around the call has a parameter of that name, or gets it by this refactor."""
    for node in ancestors(call):
        if node.type == "function_definition":
            own = node.child_by_field_name("parameters")
            if node == definition or (own and any(_parameter_name(child) == parameter for child in own.named_children)):
                return True
    return False
