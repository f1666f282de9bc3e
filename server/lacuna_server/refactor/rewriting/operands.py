"""Tells which expressions need brackets as operands although the grammar reads them there without.

Grammars of tree-sitter are laxer than their languages: ``async () => {} * 2`` is a product for them, and a syntax error
for node. What a grammar reads otherwise without brackets, such as ``a + b * 2``, is found in its tree and not here.
"""

import re
from collections.abc import Set as AbstractSet
from itertools import takewhile

from tree_sitter import Node

from lacuna_server.refactor.places.source import ancestors, same_span

SCRIPTS = frozenset(("javascript", "typescript", "tsx"))
# Nodes with operands, and the tokens behind which something in them is none: it is an argument, an index, a branch.
OPERATIONS = (
    r"((binary|unary|prefix_unary|postfix_unary|unary_op|update|pointer|sizeof|cast|type_cast|reference|await|co_await|"
    r"try|as|is|is_pattern|instanceof|satisfies|non_null|conditional|ternary|member|member_call|member_access|field|"
    r"subscript|element_access|conditional_access|index|slice|call|function_call|invocation|new|switch|with|range|clone)"
    r"_expression|(binary|unary|not|boolean|comparison)_operator|type_assertion|class_heritage|field_access|array_access|"
    r"method_invocation|attribute|subscript|call|await|list_splat|dictionary_splat)"
)
BEHIND = frozenset(("(", "[", "{", ",", "?", ":", "else"))
# Where Python takes ``:=`` without brackets.
NAMED = (
    r"argument_list|parenthesized_expression|list|set|if_clause|(list|set)_comprehension|generator_expression|subscript|"
    r"(if|while|match)_statement|elif_clause|interpolation"
)
COMPARED = r"(==|!=|[<>]=?)"


def _refused(*rules: tuple[str, str]) -> re.Pattern[str]:
    """Returns what matches the description of a node that needs brackets: pairs of it and what is around it.

    ``-`` begins a node that must be an operand, ``^`` one that must be the first thing in what is around it.
    """
    marks = {"-": "^(first )?operand ", "^": "^first (operand )?"}
    starts = [(marks.get(one[0], "(?<!\\S)"), one.lstrip("-^"), around) for one, around in rules]
    return re.compile("|".join(f"{mark}({one}) .*within ({around}) " for mark, one, around in starts))


_ASSIGNS = "(assignment|augmented_assignment|compound_assignment)_expr(ession)?"
_C = _refused((f"-{_ASSIGNS}|comma_expression|throw_expression|co_yield_statement", OPERATIONS))
_SCRIPT = _refused(
    (f"-{_ASSIGNS}|arrow_function|yield_expression|sequence_expression", OPERATIONS),
    # Operators that must not meet: a sign before a power, ``??`` beside ``||``.
    ("^(unary|await)_expression", r"binary_expression \*\*"),
    (r"binary_expression \?\?", r"binary_expression (\|\||&&)"),
    (r"binary_expression (\|\||&&)", r"binary_expression \?\?"),
    (
        "-(unary|await|update|binary|ternary|as|satisfies)_expression",
        "((member|subscript|call|new|non_null)_expression|class_heritage|extends_clause)",
    ),
)
REFUSED = {
    **dict.fromkeys(SCRIPTS, _SCRIPT),
    "python": _refused(
        ("-lambda|named_expression|yield|conditional_expression", OPERATIONS),
        ("-lambda", "for_in_clause|if_clause|interpolation"),  # these take an operand that has no colon of its own
        ("(comparison|boolean|not)_operator", "list_splat"),
        ("unary_operator|await", "await"),
        ("named_expression", rf"(?!({NAMED}) )\w+"),
    ),
    "c": _C,
    "cpp": _C,
    "java": _refused((f"-{_ASSIGNS}|lambda_expression", OPERATIONS)),
    "csharp": _refused(
        (f"-{_ASSIGNS}|lambda_expression|anonymous_method_expression|query_expression|throw_expression", OPERATIONS)
    ),
    "php": _refused(("-arrow_function|anonymous_function", OPERATIONS)),
    "rust": _refused(
        (f"-{_ASSIGNS}|closure_expression|return_expression|break_expression|range_expression", OPERATIONS),
        # A type reads on behind ``<``, nothing binds to a cast or calls what is awaited, no comparison is compared.
        ("^type_cast_expression", "(field|index|call|try|await)_expression|binary_expression <<?"),
        ("^await_expression", "call_expression"),
        (f"binary_expression {COMPARED}", f"binary_expression {COMPARED}"),
    ),
}
# What begins a declaration or a block, if a statement or the body of an arrow function begins with it.
_DECLARED = re.compile(r"^(object|object_pattern|function_expression|generator_function|class)$")
_BEGUN = frozenset(("expression_statement", "export_statement", "arrow_function"))
# In Rust these end a statement that begins with them; a condition has no braces of a structure.
_BLOCKS = re.compile(r"^(block|(if|match|while|loop|for)_expression|(unsafe|async|const)_block)$")
_HEADERS = re.compile(
    r"^((if|match|while|for|let)_(expression|condition|chain)|(if|for|switch)_statement|(for|range)_clause)$"
)
_BRACED = re.compile(r"^(struct_expression|composite_literal)$")
_ENCLOSED = re.compile(
    r"^(argument_list|arguments|parenthesized_expression|block|literal_value|(tuple|array)_expression)$"
)


def needs_brackets(node: Node, language: str) -> bool:
    """Returns whether a node of a new text must not stand in what is around it without brackets."""
    if refused := REFUSED.get(language):
        for one in same_span(node):
            if one.parent is not None and refused.search(_described(one, one.parent)):
                return True
    return _begins_otherwise(node, language)


def _described(node: Node, around: Node) -> str:
    """Returns the type of a node with its operators, and those of what is around it."""
    before = node.prev_sibling
    first = "first " * (node.start_byte == around.start_byte)
    operand = "operand " * (before is None or before.type not in BEHIND)
    said = [
        " ".join((one.type, *(child.type for child in one.children if not child.is_named))) for one in (node, around)
    ]
    return f"{first}{operand}{said[0]} within {said[1]} "


def _begins_otherwise(node: Node, language: str) -> bool:
    """Returns whether a statement that begins with a node is another one for the language than for its grammar."""
    if language in SCRIPTS:
        return bool(_DECLARED.search(node.type)) and _begins(node, _BEGUN)
    macro = node.type == "macro_invocation" and (node.text or b"").endswith(b"}")
    if language == "rust" and (macro or _BLOCKS.search(node.type)):
        around = node.parent
        return bool(around and re.fullmatch(OPERATIONS, around.type)) and _begins(node, {"expression_statement"})
    if language in ("rust", "go") and _BRACED.search(node.type):
        open_to = takewhile(lambda around: not _ENCLOSED.search(around.type), ancestors(node))
        return any(_HEADERS.search(around.type) for around in open_to)
    return False


def _begins(node: Node, kinds: AbstractSet[str]) -> bool:
    """Returns whether a node is the beginning of one of these kinds, or of the body of one, and not all of it."""
    one, around = node, node.parent
    while around is not None and around.type not in kinds:
        if around.start_byte != node.start_byte:
            return False
        one, around = around, around.parent
    if around is None:
        return False
    if around.type == "arrow_function":  # its body begins with the node
        return around.child_by_field_name("body") == one and one != node and node.type.startswith("object")
    return around.start_byte == node.start_byte or around.type == "export_statement"
