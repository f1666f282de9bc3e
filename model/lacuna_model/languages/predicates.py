"""Predicates of nodes: whether a node is allowed where it is, by its kind and by the nodes around it."""

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from lacuna_model.core import work

Predicate = Callable[[Node], bool]
COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
DECLARED = frozenset({"object", "function_expression", "generator_function", "class"})
# Text that must not precede a type's name. Text that follows the name of a variable and, in C, of a function.
NO_NAME = rb"(?<![\w.>:])(?<!using )(?<!typename )(?<!class )"
USED = rb"\s*(?:->|<<|\.\w+\(|[-+*/|&^%!=]?=(?!=)|\+\+|--)"
CALLED = rb"|\s*\((?!\s*\*)"
# A declaration of a variable.
VARIABLE = rb"\b(?:auto|bool|char|double|float|int|long|short|signed|unsigned|\w+_t)[\s*&]+%b\s*[=;,)\[]"
ACCESS = frozenset({"public", "protected", "private"})
FUNCTION = re.compile(r"(?:generator_)?function_|arrow_function|method_definition")
MODULE_PARTS = frozenset({"import_statement", "export_statement"})
ENUM_MEMBERS = "enum_body_declarations"
CONSTRUCTOR_NAMES = frozenset({b"constructor", b"'constructor'", b'"constructor"'})
TARGETS = frozenset(
    {
        "identifier",
        "member_expression",
        "subscript_expression",
        "non_null_expression",
        "as_expression",
        "satisfies_expression",
        "type_assertion",
    }
)
CONSTRUCTION = re.compile(rb"\bsuper\(")


def _around(node: Node, walls: frozenset[str] = frozenset()) -> Iterator[Node]:
    """The nodes around a node, innermost first, up to the first of ``walls``."""
    around = node.parent
    while around is not None and around.type not in walls:
        yield around
        work.check()  # a parent is looked for from the root
        around = around.parent


def _nearest(node: Node, kind: str) -> Node | None:
    """The innermost node of a kind around a node."""
    return next((one for one in _around(node) if one.type == kind), None)


def never(_node: Node) -> bool:
    """Allow no node."""
    return False


def one_of(kinds: str) -> Predicate:
    """Allow only nodes of these kinds, and comments."""
    allowed = COMMENTS.union(kinds.split())
    return lambda node: node.type in allowed


def text_matches(pattern: bytes) -> Predicate:
    """Allow only nodes whose whole text matches."""
    return lambda node: re.fullmatch(pattern, node.text or b"") is not None


def preceded_by(kinds: str) -> Predicate:
    """Allow a node only after nodes of these kinds and comments."""
    allowed = COMMENTS.union(kinds.split())

    def predicates(node: Node) -> bool:
        before = node.prev_named_sibling
        while before is not None and before.type in allowed:
            before = before.prev_named_sibling
        return before is None

    return predicates


def evenly_named(parameters: Node) -> bool:
    """Allow parameters only if all of them have names, or none of them."""
    names = {
        parameter.child_by_field_name("name") is None
        for parameter in parameters.named_children
        if parameter.type not in COMMENTS
    }
    return len(names) < 2


def inside(homes: frozenset[str], walls: frozenset[str] = frozenset()) -> Predicate:
    """Allow a node only inside one of ``homes``, with none of ``walls`` in between."""

    return lambda node: any(one.type in homes for one in _around(node, walls))


def jump(homes: frozenset[str], walls: frozenset[str]) -> Predicate:
    """Allow a ``break`` or ``continue`` only inside one of ``homes``, with none of ``walls`` in between.

    A jump with a value is always allowed; a jump with a label needs a statement around it with that label.
    """
    around = inside(homes, walls)

    def predicates(node: Node) -> bool:
        operand = node.named_children[0] if node.named_child_count else None
        if operand is None or operand.type in COMMENTS:
            return around(node)
        is_label = operand.type == "label" or node.type.endswith("_statement")
        return not is_label or _labelled(node, operand, walls)

    return predicates


def _labelled(node: Node, label: Node, walls: frozenset[str]) -> bool:
    """Whether a statement around a jump has its label, which is that statement's first child."""
    return any(one.child_count and one.children[0].text == label.text for one in _around(node, walls))


def statement_start(expression: Node) -> bool:
    """Allow an expression only if it does not begin with a node of ``DECLARED``, which a statement reads otherwise."""
    while expression.child_count and expression.type not in DECLARED:
        head = expression.child(0)
        assert head is not None
        expression = head
    return expression.type not in DECLARED


def in_constructor(node: Node) -> bool:
    """Allow a node only in the constructor of a class, or outside of methods."""
    method = _nearest(node, "method_definition")
    return method is None or _constructs(method)


def awaited(node: Node) -> bool:
    """Allow a node only in an ``async`` function, or outside of all functions in a module."""
    for around in _around(node):
        if FUNCTION.match(around.type):
            return any(child.type == "async" for child in around.children)
        if around.parent is None:
            return any(child.type in MODULE_PARTS for child in around.children)
    return True


def in_line(node: Node) -> bool:
    """Allow a node only on the line where the token before it ends."""
    before = node.prev_sibling
    return before is None or before.end_point.row == node.start_point.row


def in_directive(node: Node) -> bool:
    """Allow a node only on the line of the directive around it, which backslashes may continue."""
    directive, before = node.parent, node.prev_sibling
    if directive is None or before is None or node.type in COMMENTS:
        return True
    between = (directive.text or b"")[before.end_byte - directive.start_byte : node.start_byte - directive.start_byte]
    return b"\n" not in re.sub(rb"\\\r?\n", b"", between)


def line_start(node: Node) -> bool:
    """Allow a node only at the beginning of a line, comments aside."""
    one: Node | None = node
    while one is not None and (one.prev_sibling is None or one.prev_sibling.type in COMMENTS):
        one = one.prev_sibling or one.parent
    before = one.prev_sibling if one is not None else None
    return before is None or before.end_point.row < node.start_point.row or before.end_point.column == 0


def distinct(modifiers: Node) -> bool:
    """Allow modifiers only if none is repeated and at most one sets the access."""
    words = [word.type for word in modifiers.children if not word.is_named]
    return len(words) == len(set(words)) and len(ACCESS.intersection(words)) < 2


def macro(node: Node) -> bool:
    """Allow a node that a macro may stand for: a word, an expression that begins with a call, or assembly."""
    if node.type in ("identifier", "gnu_asm_expression"):
        return True
    while node.child_count:
        head = node.children[0]
        if head.type == "identifier":
            return node.type == "call_expression"
        node = head
    return False


# Comments and strings of C.
_PROSE = re.compile(rb'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)


def type_name(used: bytes = USED) -> Predicate:
    """Allow a name as a type only if the function around it, if any, does not use it as a variable."""

    def predicates(name: Node) -> bool:
        function = _nearest(name, "function_definition")
        if function is None:
            return True
        text, word = _PROSE.sub(b" ", function.text or b""), re.escape(name.text or b"")
        if re.search(rb"\b" + word + rb"[\s*&]+" + word + rb"\b", text):  # a variable with the name of its type
            return True
        return not re.search(b"%b%b(?:%b)|%b" % (NO_NAME, word, used, VARIABLE % word), text)

    return predicates


def attribute(name: Node) -> bool:
    """Allow a macro after the parameters of a function if it is in capitals or on a later line."""
    function = _nearest(name, "function_declarator")
    parameters = function and function.child_by_field_name("parameters")
    if parameters is not None and parameters.end_point.row < name.start_point.row:
        return True
    return re.fullmatch(rb"[A-Z_][A-Z0-9_]*|_\w+", name.text or b"") is not None


def of_its_name(owner: Node) -> bool:
    """Allow a class only if its constructors have its name.

    The class is checked, since a fill may name it far before its constructors.
    """
    own, body = owner.child_by_field_name("name"), owner.child_by_field_name("body")
    if own is None or body is None:
        return True
    members = [*body.children, *(inner for one in body.children if one.type == ENUM_MEMBERS for inner in one.children)]
    names = (one.child_by_field_name("name") for one in members if one.type == "constructor_declaration")
    return all(name is None or name.text == own.text for name in names)


def heir(owner: Node) -> bool:
    """Allow a class only if it extends another one, or no constructor of it calls ``super``."""
    body = owner.child_by_field_name("body")
    if body is None or any(child.type == "class_heritage" for child in owner.children):
        return True
    methods = (one for one in body.children if one.type == "method_definition" and _constructs(one))
    return all(CONSTRUCTION.search(method.text or b"") is None for method in methods)


def destroyed(owner: Node) -> bool:
    """Allow a class only if its destructors have its name."""
    own, body = owner.child_by_field_name("name"), owner.child_by_field_name("body")
    if own is None or body is None:
        return True
    words = re.findall(rb"\w+", own.text or b"")  # of A<B>::C as well
    return all(name.lstrip(b"~ \t") in words for name in _destructors(body))


def _destructors(body: Node) -> Iterator[bytes]:
    for member in body.children:
        declarator = member.child_by_field_name("declarator")
        name = declarator.child_by_field_name("declarator") if declarator is not None else None
        if name is not None and name.type == "destructor_name":
            yield name.text or b""


def target(node: Node) -> bool:
    """Allow only expressions that a value can be assigned to."""
    while node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[-1]
    return node.type in TARGETS


def matched(element: Node) -> bool:
    """Allow an element only if its closing tag has the name of its opening tag."""
    return _tag_name(element.children[0]) == _tag_name(element.children[-1])


def _tag_name(tag: Node) -> bytes:
    name = tag.child_by_field_name("name")
    return b"".join((name.text or b"").split()) if name is not None else b""


def _constructs(method: Node) -> bool:
    name = method.child_by_field_name("name")
    return name is None or name.text in CONSTRUCTOR_NAMES
