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
# An operator that must not stand beside these without brackets, and one with no sign before its left operand.
COALESCES, LOGICAL, POWER = "??", frozenset(("||", "&&")), "**"
# Expressions that bind looser than any operator, by language.
_ASSIGNS = r"^(assignment|augmented_assignment|compound_assignment)_expr(ession)?$"
_SCRIPT = re.compile(rf"{_ASSIGNS}|^(arrow_function|yield_expression|sequence_expression)$")
_C = re.compile(rf"{_ASSIGNS}|^(comma_expression|throw_expression|co_yield_statement)$")
LOOSE = {
    **dict.fromkeys(SCRIPTS, _SCRIPT),
    "python": re.compile(r"^(lambda|named_expression|yield|conditional_expression)$"),
    "c": _C,
    "cpp": _C,
    "java": re.compile(rf"{_ASSIGNS}|^lambda_expression$"),
    "csharp": re.compile(
        rf"{_ASSIGNS}|^(lambda_expression|anonymous_method_expression|query_expression|throw_expression)$"
    ),
    "php": re.compile(r"^(arrow_function|anonymous_function)$"),
    "rust": re.compile(rf"{_ASSIGNS}|^(closure_expression|return_expression|break_expression|range_expression)$"),
}
# Nodes with operands, and the tokens behind which something in them is none: it is an argument, an index, a branch.
OPERATIONS = re.compile(
    r"^((binary|unary|prefix_unary|postfix_unary|unary_op|update|pointer|sizeof|cast|type_cast|reference|await|co_await|"
    r"try|as|is|is_pattern|instanceof|satisfies|non_null|conditional|ternary|member|member_call|member_access|field|"
    r"subscript|element_access|conditional_access|index|slice|call|function_call|invocation|new|switch|with|range|clone)"
    r"_expression|(binary|unary|not|boolean|comparison)_operator|type_assertion|class_heritage|field_access|array_access|"
    r"method_invocation|attribute|subscript|call|await|list_splat|dictionary_splat)$"
)
BEHIND = frozenset(("(", "[", "{", ",", "?", ":", "else"))
# In Python these take an operand that has no colon of its own.
CLAUSES = frozenset(("for_in_clause", "if_clause", "interpolation"))
# Where Python takes ``:=`` without brackets.
NAMED = re.compile(
    r"^(argument_list|parenthesized_expression|list|set|if_clause|(list|set)_comprehension|generator_expression|subscript|"
    r"(if|while|match)_statement|elif_clause|interpolation)$"
)
# What Python's ``*`` does not take in a list without brackets.
SPREAD = re.compile(r"^(comparison|boolean|not)_operator$")
# What its ``await`` does not take without brackets.
AWAITED = re.compile(r"^(unary_operator|await)$")
# In scripts: operations behind an operand, before which no operator may stand; and where they are its operand.
_SIGNED = re.compile(r"^(unary|await)_expression$")
_OPERATED = re.compile(r"^(unary|await|update|binary|ternary|as|satisfies)_expression$")
_CHAINED = re.compile(r"^(member|subscript|call|new|non_null)_expression$|^class_heritage$|^extends_clause$")
# What begins a declaration or a block, if a statement or the body of an arrow function begins with it.
_DECLARED = re.compile(r"^(object|object_pattern|function_expression|generator_function|class)$")
_BEGUN = frozenset(("expression_statement", "export_statement", "arrow_function"))
# In Rust a type reads on behind ``<``, nothing binds to a cast or calls what is awaited, and no comparison is compared.
_POSTFIX = re.compile(r"^(field|index|call|try|await)_expression$")
_TYPED = frozenset(("<", "<<"))
_COMPARED = frozenset(("==", "!=", "<", ">", "<=", ">="))
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
    loose = LOOSE.get(language)
    for one in same_span(node):
        if (around := one.parent) is None:
            break
        takes = OPERATIONS.search(around.type) or (one.type == "lambda" and around.type in CLAUSES)
        if loose is not None and loose.search(one.type) and takes and _is_operand(one):
            return True
        if language in SCRIPTS and (_is_mixed(one, around) or _is_chained(one, around)):
            return True
        if language == "rust" and _is_refused(one, around):
            return True
        if around.type == "list_splat" and SPREAD.search(one.type):
            return True
        if around.type == "await" and AWAITED.search(one.type):
            return True
        if one.type == "named_expression" and not NAMED.search(around.type):
            return True
    return begins_otherwise(node, language)


def _is_operand(node: Node) -> bool:
    before = node.prev_sibling
    return before is None or before.type not in BEHIND


def _is_mixed(node: Node, around: Node) -> bool:
    """Returns whether operators meet that must not: ``??`` and ``||``, or a sign before a power."""
    if around.type != "binary_expression":
        return False
    outer = _operators(around)
    if POWER in outer and node.start_byte == around.start_byte and _SIGNED.search(node.type):
        return True
    both = outer | _operators(node) if node.type == around.type else frozenset()
    return COALESCES in both and not LOGICAL.isdisjoint(both)


def _operators(node: Node) -> frozenset[str]:
    return frozenset(child.type for child in node.children if not child.is_named)


def _is_chained(node: Node, around: Node) -> bool:
    return bool(_CHAINED.search(around.type) and _OPERATED.search(node.type)) and _is_operand(node)


def _is_refused(node: Node, around: Node) -> bool:
    """Returns whether Rust does not take a cast, a comparison or what is awaited at this place."""
    outer, inner = _operators(around), _operators(node)
    binary = around.type == "binary_expression"
    if node.type == "type_cast_expression" and node.start_byte == around.start_byte:
        return bool(_POSTFIX.search(around.type)) or (binary and not _TYPED.isdisjoint(outer))
    if node.type == "await_expression":
        return around.type == "call_expression" and node.start_byte == around.start_byte
    both = binary and node.type == around.type
    return both and not _COMPARED.isdisjoint(outer) and not _COMPARED.isdisjoint(inner)


def begins_otherwise(node: Node, language: str) -> bool:
    """Returns whether a statement that begins with a node is another one for the language than for its grammar."""
    if language in SCRIPTS:
        return bool(_DECLARED.search(node.type)) and _begins(node, _BEGUN)
    macro = node.type == "macro_invocation" and (node.text or b"").endswith(b"}")
    if language == "rust" and (macro or _BLOCKS.search(node.type)):
        around = node.parent
        return around is not None and bool(OPERATIONS.search(around.type)) and _begins(node, {"expression_statement"})
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
