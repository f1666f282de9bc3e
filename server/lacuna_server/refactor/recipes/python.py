"""The recipes for Python: ``annotations``, ``logging`` and ``parameter``."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from tree_sitter import Node

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_model.syntax.faults import CLAUSES
from lacuna_server.refactor.places.source import Source, ancestors, walk
from lacuna_server.refactor.rewriting.refactoring import Found
from lacuna_server.refactor.rewriting.rewrite import LeftOut, Part, Rewrite, first_line

SCOPES = frozenset({"function_definition", "class_definition", "lambda"})
IMPORTS = frozenset({"import_statement", "import_from_statement", "future_import_statement"})
STRINGS = ("string", "concatenated_string")


def _nodes(root: Node, *types: str) -> Iterator[Node]:
    """Yields the nodes of these types in a tree, in the order of the text."""
    return (node for node in walk(root) if node.type in types)


def _own_nodes(function: Node, *types: str) -> Iterator[Node]:
    """Yields the nodes of these types in a function's body, without those in nested functions and classes."""
    body = function.child_by_field_name("body")
    found = walk(body, lambda node: node.type not in SCOPES) if body is not None else ()
    return (node for node in found if node.type in types)


def _elements(node: Node) -> list[Node]:
    """Returns the named children of a node that are no comments."""
    return [child for child in node.named_children if child.type != "comment"]


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode()


def _name(node: Node) -> str:
    return _text(node.child_by_field_name("name"))


def _is_docstring(node: Node) -> bool:
    statement = node.named_children
    return node.type == "expression_statement" and len(statement) == 1 and statement[0].type == "string"


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


def annotated(sources: Sequence[Source], settings: Mapping[str, str]) -> Iterator[Found]:
    """Yields a rewrite for every parameter and every return value without an annotation."""
    for source in sources:
        classes = [
            (_name(node), node.end_byte) for node in source.tree.root_node.children if node.type == "class_definition"
        ]
        lazy = any("annotations" in _text(node) for node in _nodes(source.tree.root_node, "future_import_statement"))
        imported = _imported(source) if lazy else []
        for function in _nodes(source.tree.root_node, "function_definition"):
            known = [defined for defined, end in classes if lazy or end <= function.start_byte]
            hole = _hole([*BUILTINS, *known, *imported][:MAX_NAMES])
            yield source, _signature(function, hole)


def _signature(function: Node, hole: Region) -> Iterator[Rewrite]:
    parameters = function.child_by_field_name("parameters")
    if parameters is None:
        return
    bound = "staticmethod" not in _decorators(function) and _is_method(function)
    for parameter in _elements(parameters)[bound:]:
        yield from _parameter(parameter, _name(function), hole)
    if function.child_by_field_name("return_type") is None and (returns := _returns(function, hole)):
        at = parameters.end_byte
        yield Rewrite(at, at, (" -> ", *returns), f"return type of {_name(function)}")


def _parameter(parameter: Node, function: str, hole: Region) -> Iterator[Rewrite]:
    label = f"{_text(parameter).split('=')[0].strip()} of {function}"
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
    if value.type in STRINGS and _text(value).lower().startswith(("b", "rb")):
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
    is_open = last is not None and (last.type == "raise_statement" or _text(last) == "...")
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
            is_endless = _text(node.child_by_field_name("condition")) in ("True", "1")
            return not is_endless or any(True for _ in _own_nodes(node, "break_statement"))
        case "try_statement":
            left = [(one.type, _is_left(one)) for one in inner]
            is_done = all(is_left for kind, is_left in left if kind in ("block", "else_clause"))
            is_caught = any(is_left for kind, is_left in left if kind.startswith("except"))
            return (is_done or is_caught) and ("finally_clause", False) not in left
        case "match_statement":
            cases = [one for block in inner for one in block.named_children if one.type == "case_clause"]
            return any(map(_is_left, cases)) or not any(_text(one).startswith("case _:") for one in cases)
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
    for statement in _nodes(source.tree.root_node, "import_from_statement"):
        for child in statement.children_by_field_name("name"):
            alias = child.child_by_field_name("alias")
            found.append(_text(alias if alias is not None else child))
    return [imported for imported in found if re.fullmatch(r"[A-Z]\w*[a-z]\w*", imported)]


def _is_method(function: Node) -> bool:
    """Returns whether a function is directly in a class."""
    kinds = (node.type for node in ancestors(function) if node.type in ("class_definition", "function_definition"))
    return next(kinds, "") == "class_definition"


def _decorators(function: Node) -> str:
    parent = function.parent
    if parent is None or parent.type != "decorated_definition":
        return ""
    return " ".join(_text(child) for child in parent.children if child.type == "decorator")


LEVELS = "debug|info|warning|error"
STDERR_LEVELS = "warning|error"
EXCEPT_LEVELS = "warning|error|exception"
PRINTS = '(expression_statement (call function: (identifier) @name (#eq? @name "print")) @call)'
# What a module has bound to a logger.
LOGGER = """(module (expression_statement (assignment left: (identifier) @name right: (call
    function: [(identifier) @function (attribute attribute: (identifier) @function)] (#eq? @function "getLogger")))))"""


def logged(sources: Sequence[Source], settings: Mapping[str, str]) -> Iterator[Found]:
    """Yields every statement that is a call of ``print``, and the logger's definition where the module has none."""
    for source in sources:
        logger = next((_text(found["name"][0]) for found in source.query(LOGGER)), "")
        rewritten = [_call(found["call"][0], logger or "logger") for found in source.query(PRINTS)]
        if any(isinstance(item, Rewrite) for item in rewritten) and not logger:
            yield source, _logger(source)
        yield source, rewritten


def _call(call: Node, logger: str) -> Rewrite | LeftOut:
    arguments = call.child_by_field_name("arguments")
    if arguments is None or arguments.type != "argument_list":
        return LeftOut(call.start_byte, "prints a generator")
    options = {_name(child): child for child in _elements(arguments) if child.type == "keyword_argument"}
    values = [child for child in _elements(arguments) if child.type != "keyword_argument"]
    levels = EXCEPT_LEVELS if any(node.type == "except_clause" for node in ancestors(call)) else LEVELS
    if "file" in options:
        if _text(options.pop("file").child_by_field_name("value")) != "sys.stderr":
            return LeftOut(call.start_byte, "prints to a file other than stdout and stderr")
        levels = EXCEPT_LEVELS if levels == EXCEPT_LEVELS else STDERR_LEVELS
    options.pop("flush", None)
    if options or not values or any("splat" in value.type for value in values):
        return LeftOut(call.start_byte, "prints with options or arguments that a logging call does not have")
    if len(list(_nodes(arguments, "comment"))) != sum(len(list(_nodes(value, "comment"))) for value in values):
        return LeftOut(call.start_byte, "has a comment among its arguments")
    level = Region(0, 0, max_tokens=8, single_line=True, regex=levels)
    parts = (f"{logger}.", level, f"({_message(values)})")
    return Rewrite(call.start_byte, call.end_byte, parts, first_line(_text(call)))


def _message(values: Sequence[Node]) -> str:
    """Returns the arguments of the logging call: a format, then its values."""
    if len(values) == 1 and values[0].type in STRINGS:
        return _text(values[0])
    plain = [_plain(value) for value in values]
    shown = [_text(value) for value, said in zip(values, plain, strict=True) if said is None]
    sign = "%%" if shown else "%"  # logging formats a message only where it has values
    formats = ["%s" if said is None else said.replace("%", sign) for said in plain]
    return ", ".join([f'"{" ".join(formats)}"', *shown])


def _plain(value: Node) -> str | None:
    """Returns the inside of a string literal if it can be put between double quotes unchanged, otherwise None."""
    literal = _text(value)
    simple = value.type == "string" and literal[0] in "\"'" and not literal.startswith(('"""', "'''"))
    inside = literal[1:-1]
    return inside if simple and not (literal[0] == "'" and ('"' in inside or "\\" in inside)) else None


def _logger(source: Source) -> Iterator[Rewrite]:
    """Yields ``import logging`` before the module's first import, and the logger's definition after the last one."""
    label, newline = "the module's logger", source.newline
    body = [node for node in _elements(source.tree.root_node) if not _is_docstring(node)]
    imports = list(takewhile(lambda node: node.type in IMPORTS, body))
    known = any(_text(node) == "import logging" for node in imports)
    first = next((node for node in imports if node.type != "future_import_statement"), None)
    if first is not None and not known:
        yield Rewrite(first.start_byte, first.start_byte, ("import logging" + newline,), label, support=True)
    needed = [] if known or first is not None else ["import logging"]
    definition = newline.join([*needed, "", "logger = logging.getLogger(__name__)"])
    at = source.behind_comment(imports[-1].end_byte) if imports else body[0].start_byte
    yield Rewrite(at, at, (newline + definition if imports else definition + newline * 3,), label, support=True)


# An expression without a top-level comma: the fill must not become two arguments.
EXPRESSION = (
    r"""[\w.]+(\([^()\n]*\))?|"[^"\\\n]*"|'[^'\\\n]*'|-?[0-9]+(\.[0-9]+)?|\[[^\[\]\n]*\]|\([^()\n]*\)|\{[^{}\n]*\}"""
)
HOLE = Region(0, 0, max_tokens=24, single_line=True, regex=EXPRESSION)
PARAMETER = {
    "function": "the name of the function, or Class.name",
    "parameter": "as in the definition: 'timeout: float' or 'timeout: float = 10'",
    "value": "what callers pass; by default, the model chooses",
}


def with_parameter(sources: Sequence[Source], settings: Mapping[str, str]) -> Iterator[Found]:
    """Yields the rewrites of the definition and of its callers.

    Raises RequestError for invalid settings, and where there is not exactly one such definition.
    """
    wanted, declared = settings.get("function", ""), settings.get("parameter", "")
    if not wanted or not declared:
        raise RequestError("the recipe parameter needs the settings function=NAME and parameter='NAME: TYPE'")
    parameter, has_default = _declared(declared)
    source, function = _definition(sources, wanted)
    yield source, [_declared_in(function, declared, parameter, has_default)]
    value = settings.get("value", "")
    try:
        ast.parse(value or "None", mode="eval")
    except SyntaxError as error:
        raise RequestError(f"value={value} is not a Python expression") from error
    if has_default and not value:
        return
    for caller in sources:
        calls = _nodes(caller.tree.root_node, "call")
        passed = (_passed(call, wanted.rpartition(".")[2], parameter, value, function) for call in calls)
        yield caller, filter(None, passed)


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
        for node in _nodes(source.tree.root_node, "function_definition")
        if _name(node) == plain and (not owner or owner == _class_of(node))
    ]
    if len(found) != 1:
        where = ", ".join(f"{source.path}:{node.start_point.row + 1}" for source, node in found[:5])
        several = f"several functions are called {wanted}: {where}; use Class.name"
        raise RequestError(several if found else f"no function is called {wanted}")
    return found[0]


def _class_of(function: Node) -> str:
    return next((_name(node) for node in ancestors(function) if node.type == "class_definition"), "")


def _declared_in(function: Node, declared: str, parameter: str, has_default: bool) -> Rewrite:
    """Adds the parameter after the last one but before ``**``; keyword-only where it would follow a default."""
    parameters = function.child_by_field_name("parameters")
    assert parameters is not None
    own = _elements(parameters)
    if any(_called(child) == parameter for child in own):
        raise RequestError(f"{_name(function)} already has a parameter {parameter}")
    label = f"{parameter} of {_name(function)}"
    named = [child for child in own if child.type != "dictionary_splat_pattern" and not _text(child).startswith("**")]
    starred = any(_text(child).startswith("*") for child in named)
    optional = any(child.type in ("default_parameter", "typed_default_parameter") for child in named)
    added = declared if has_default or starred or not optional else f"*, {declared}"
    at = named[-1].end_byte if named else parameters.start_byte + 1
    return Rewrite(at, at, (f", {added}" if named else f"{added}, " if own else added,), label)


def _called(parameter: Node) -> str:
    if parameter.type == "typed_parameter":
        return _text(parameter.named_children[0]).lstrip("*")
    return _name(parameter) or _text(parameter).lstrip("*")


def _passed(call: Node, function: str, parameter: str, value: str, definition: Node) -> Rewrite | LeftOut | None:
    """Adds the argument to a call. Returns None for a call of another function or one that passes it already."""
    called = _text(call.child_by_field_name("function"))
    arguments = call.child_by_field_name("arguments")
    if called.rpartition(".")[2].strip() != function or arguments is None:
        return None
    if arguments.type != "argument_list":
        return LeftOut(call.start_byte, "the argument is a generator without parentheses; add them first")
    own = _elements(arguments)
    if any(_name(child) == parameter for child in own if child.type == "keyword_argument"):
        return None
    if any(child.type == "dictionary_splat" for child in own):
        return LeftOut(call.start_byte, f"the call may already pass {parameter} in **")
    at = own[-1].end_byte if own else arguments.start_byte + 1
    argument: Part = value or (parameter if _in_scope(call, parameter, definition) else "") or HOLE
    return Rewrite(at, at, (", " if own else "", f"{parameter}=", argument), first_line(_text(call)))


def _in_scope(call: Node, parameter: str, definition: Node) -> bool:
    """Returns whether a function around the call has a parameter of that name, or gets it by this refactor."""
    around = [node for node in ancestors(call) if node.type == "function_definition"]
    lists = (node.child_by_field_name("parameters") for node in around)
    return definition in around or any(_called(one) == parameter for own in lists if own for one in own.named_children)
