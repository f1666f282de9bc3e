"""What declares names in C and C++, and in which scopes these may be declared but once."""

from tree_sitter import Node

from lacuna_model.syntax.once import CLASH, Once, Role
from lacuna_model.syntax.rules import kinds


def _given(declaration: Node) -> int:
    """The weight of what is declared here, and not somewhere else as well."""
    return -CLASH if any(one.text == b"extern" for one in declaration.children) else CLASH


def _is_function(declarator: Node | None) -> bool:
    """Whether a declarator is that of a function, a pointer to one, or a macro that looks like that."""
    while declarator is not None and declarator.type != "function_declarator":
        inner = declarator.child_by_field_name("declarator")
        declarator = declarator.named_children[0] if declarator.type == "reference_declarator" else inner
    return declarator is not None


def _unless_function(_holder: Node, declarator: Node) -> int:
    return 0 if _is_function(declarator) else CLASH


def _c_variable(declaration: Node, declarator: Node) -> int:
    """At the top level of C a variable may be declared again, unless both give it a value."""
    if _is_function(declarator):
        return 0
    outside = declaration.parent is not None and declaration.parent.type not in _C_LOCAL
    return int(declarator.type == "init_declarator") if outside else _given(declaration)


def _cpp_variable(declaration: Node, declarator: Node) -> int:
    return 0 if _is_function(declarator) else _given(declaration)


def _defined(holder: Node, _child: Node) -> int:
    """Of types, which may be named before."""
    return int(holder.child_by_field_name("body") is not None)


_C_LOCAL = kinds("compound_statement for_statement case_statement labeled_statement")
_C_SCOPES = kinds(
    "translation_unit compound_statement function_definition for_statement parameter_declaration declaration "
    "type_definition type_descriptor field_declaration field_declaration_list enumerator_list "
    "preproc_if preproc_ifdef preproc_else preproc_elif"
)
_C_ROLES = {
    "declaration": Role("declarator", weight=_c_variable),
    "function_definition": Role("declarator", weight=1),
    "parameter_declaration": Role("declarator", weight=_unless_function),
    "field_declaration": Role("declarator", "member"),
    "enumerator": Role(),
    "labeled_statement": Role("label", "label", until="function_definition"),
    "case_statement": Role("value", "case"),
    "struct_specifier": Role(space="type", weight=_defined),
    "union_specifier": Role(space="type", weight=_defined),
    "enum_specifier": Role(space="type", weight=_defined),
}
_C_THROUGH = {
    "init_declarator": "declarator",
    "pointer_declarator": "declarator",
    "array_declarator": "declarator",
    "function_declarator": "declarator",
    "parenthesized_declarator": "*",
}
_C_NAMES = "identifier field_identifier type_identifier statement_identifier number_literal char_literal"
_C_BODIES = kinds("compound_statement")

_CPP_ROLES = _C_ROLES | {
    "declaration": Role("declarator", weight=_cpp_variable),
    "function_definition": Role("declarator", weight=0),  # of one name there may be many
    "field_declaration": Role("declarator", "member", _unless_function),
    "optional_parameter_declaration": Role("declarator"),
    "for_range_loop": Role("declarator", within=True),
    "class_specifier": Role(space="type", weight=_defined),
}
_CPP_OWN = kinds("lambda_expression for_range_loop catch_clause")
_CPP_SCOPES = (
    _C_SCOPES
    | _CPP_OWN
    | kinds("declaration_list template_parameter_list optional_parameter_declaration alias_declaration")
    | kinds("if_statement while_statement switch_statement")
)

C_ONCE = (
    Once("c", _C_NAMES, _C_ROLES, _C_SCOPES, _C_THROUGH, _C_BODIES, kinds("function_definition")),
    Once(
        "cpp",
        _C_NAMES,
        _CPP_ROLES,
        _CPP_SCOPES,
        _C_THROUGH | {"reference_declarator": "*", "structured_binding_declarator": "*"},
        _C_BODIES,
        _CPP_OWN | kinds("function_definition for_statement if_statement while_statement"),
    ),
)
