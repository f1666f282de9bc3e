"""The recipe ``logging``: replaces ``print`` calls in Python by calls of the module's logger.

The format and its arguments follow from the call. The model chooses only the level.
"""

from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from lacuna_model.core.params import Region
from lacuna_server.refactor.places.source import Source, ancestors
from lacuna_server.refactor.recipes.annotations import head_imports, is_docstring, nodes, text
from lacuna_server.refactor.rewriting.refactoring import Found
from lacuna_server.refactor.rewriting.rewrite import LeftOut, Rewrite, first_line

LEVELS = "debug|info|warning|error"
STDERR_LEVELS = "warning|error"
EXCEPT_LEVELS = "warning|error|exception"
STRINGS = ("string", "concatenated_string")
PRINTS = '(expression_statement (call function: (identifier) @name (#eq? @name "print")) @call)'
# What a module has bound to a logger.
LOGGER = """(module (expression_statement (assignment left: (identifier) @name right: (call
    function: [(identifier) @function (attribute attribute: (identifier) @function)] (#eq? @function "getLogger")))))"""


def find(sources: Sequence[Source], settings: Mapping[str, str]) -> Iterator[Found]:
    """Yields every statement that is a call of ``print``, and the logger's definition where the module has none."""
    for source in sources:
        logger = next((text(found["name"][0]) for found in source.query(LOGGER)), "")
        rewritten = [_rewrite(found["call"][0], logger or "logger") for found in source.query(PRINTS)]
        if any(isinstance(item, Rewrite) for item in rewritten) and not logger:
            yield from ((source, item) for item in _definition(source))
        for item in rewritten:
            yield source, item


def _rewrite(call: Node, logger: str) -> Rewrite | LeftOut:
    arguments = call.child_by_field_name("arguments")
    if arguments is None or arguments.type != "argument_list":
        return LeftOut(call.start_byte, "prints a generator")
    children = [child for child in arguments.named_children if child.type != "comment"]
    options = {text(child.child_by_field_name("name")): child for child in children if child.type == "keyword_argument"}
    values = [child for child in children if child.type != "keyword_argument"]
    levels = EXCEPT_LEVELS if any(node.type == "except_clause" for node in ancestors(call)) else LEVELS
    if "file" in options:
        if text(options.pop("file").child_by_field_name("value")) != "sys.stderr":
            return LeftOut(call.start_byte, "prints to a file other than stdout and stderr")
        levels = EXCEPT_LEVELS if levels == EXCEPT_LEVELS else STDERR_LEVELS
    options.pop("flush", None)
    if options or not values or any("splat" in value.type for value in values):
        return LeftOut(call.start_byte, "prints with options or arguments that a logging call does not have")
    if len(list(nodes(arguments, "comment"))) != sum(len(list(nodes(value, "comment"))) for value in values):
        return LeftOut(call.start_byte, "has a comment among its arguments")
    level = Region(0, 0, max_tokens=8, single_line=True, regex=levels)
    parts = (f"{logger}.", level, f"({_message(values)})")
    return Rewrite(call.start_byte, call.end_byte, parts, first_line(text(call)))


def _message(values: Sequence[Node]) -> str:
    """Returns the arguments of the logging call: a format, then its values."""
    if len(values) == 1 and values[0].type in STRINGS:
        return text(values[0])
    plain = [_plain(value) for value in values]
    shown = [text(value) for value, said in zip(values, plain, strict=True) if said is None]
    sign = "%%" if shown else "%"  # logging formats a message only where it has values
    formats = ["%s" if said is None else said.replace("%", sign) for said in plain]
    return ", ".join([f'"{" ".join(formats)}"', *shown])


def _plain(value: Node) -> str | None:
    """Returns the inside of a string literal if it can be put between double quotes unchanged, otherwise None."""
    literal = text(value)
    simple = value.type == "string" and literal[0] in "\"'" and not literal.startswith(('"""', "'''"))
    inside = literal[1:-1]
    return inside if simple and not (literal[0] == "'" and ('"' in inside or "\\" in inside)) else None


def _definition(source: Source) -> Iterator[Rewrite]:
    """Yields ``import logging`` before the module's first import, and the logger's definition after the last one."""
    label, newline = "the module's logger", source.newline
    imports = head_imports(source)
    known = any(text(node) == "import logging" for node in imports)
    first = next((node for node in imports if node.type != "future_import_statement"), None)
    if first is not None and not known:
        yield Rewrite(first.start_byte, first.start_byte, ("import logging" + newline,), label, support=True)
    needed = [] if known or first is not None else ["import logging"]
    definition = newline.join([*needed, "", "logger = logging.getLogger(__name__)"])
    if imports:
        at = source.behind_comment(imports[-1].end_byte)
        yield Rewrite(at, at, (newline + definition,), label, support=True)
        return
    body = [node for node in source.tree.root_node.named_children if node.type != "comment" and not is_docstring(node)]
    yield Rewrite(body[0].start_byte, body[0].start_byte, (definition + newline * 3,), label, support=True)
