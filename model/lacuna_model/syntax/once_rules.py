"""What declares names in each language, and in which scopes these may be declared but once."""

from tree_sitter import Node

from lacuna_model.syntax.c_once import C_ONCE
from lacuna_model.syntax.once import CLASH, Once, Role
from lacuna_model.syntax.rules import kinds

TYPE = Role(space="type")
KEY = Role("key", "key")
MEMBER = Role(space="member")


def _unless_partial(holder: Node, _child: Node) -> int:
    """The parts of a type may be many."""
    return 0 if any(one.text == b"partial" for one in holder.children) else CLASH


def _lexical(declarator: Node, _child: Node) -> int:
    """What ``let`` and ``const`` declare; ``var`` may go with itself and with parameters."""
    parent = declarator.parent
    return CLASH if parent is not None and parent.type == "lexical_declaration" else 0


def _constructor(method: Node, name: Node) -> int:
    return CLASH if name.text == b"constructor" and method.child_by_field_name("body") is not None else 0


def _apart(item: Node, _child: Node) -> int:
    """Of items without an attribute, which may choose between two."""
    before = item.prev_named_sibling
    return -CLASH if before is not None and before.type == "attribute_item" else CLASH


def _renews(variables: Node, _child: Node) -> bool:
    """Whether ``:=`` declares something that nothing above it in its block does: then other names may be known."""
    known, above = {b"_"}, variables.prev_named_sibling
    while above is not None:
        known.update(name.text or b"" for name in _go_names(above))
        above = above.prev_named_sibling
    block = variables.parent and variables.parent.parent
    if block is not None and block.parent is not None and block.parent.type in _GO_FUNCTIONS:
        lists = (block.parent.child_by_field_name(field) for field in ("receiver", "parameters", "result"))
        parameters = (one for own in lists if own is not None for one in own.named_children)
        known.update(name.text or b"" for one in parameters for name in one.children_by_field_name("name"))
    return any(name.text not in known for name in _go_names(variables))


def _go_names(statement: Node) -> list[Node]:
    """What ``:=`` or ``var`` declares."""
    left = statement.child_by_field_name("left")
    if statement.type == "short_var_declaration" and left is not None:
        return left.named_children
    if statement.type not in ("var_declaration", "var_spec_list"):
        return statement.children_by_field_name("name") if statement.type == "var_spec" else []
    return [name for inner in statement.named_children for name in _go_names(inner)]


def _literal(case: Node, _child: Node) -> int:
    """Of a case of one literal; names may stand for values that are not known yet."""
    value = case.child_by_field_name("value")
    alone = value.named_children if value is not None else []
    return CLASH if len(alone) == 1 and alone[0].type.endswith("_literal") else 0


def _go_function(function: Node, name: Node) -> int:
    return 0 if name.text == b"init" else CLASH


def _single(pair: Node, _child: Node) -> int:
    """Of the keys of a mapping; in a sequence each is a mapping of its own."""
    return 0 if pair.parent is not None and pair.parent.type == "flow_sequence" else CLASH


def _table(_table: Node, key: Node) -> int:
    """A table of a dotted name may be part of each of several others."""
    return 0 if key.type == "dotted_key" else 1


_JAVA_WALLS = kinds(
    "method_declaration constructor_declaration compact_constructor_declaration static_initializer class_body "
    "interface_body enum_body enum_body_declarations record_declaration annotation_type_body program"
)
_JAVA_METHOD = Role(space="method", signature="parameters")
_JAVA_ROLES = {
    "variable_declarator": Role(),
    "formal_parameter": Role(),
    "catch_formal_parameter": Role(),
    "resource": Role(),
    "enhanced_for_statement": Role(within=True),
    "lambda_expression": Role("parameters", within=True),
    "inferred_parameters": Role("*"),
    "enum_constant": Role(),
    "switch_label": Role("*", "case"),
    "method_declaration": _JAVA_METHOD,
    "constructor_declaration": _JAVA_METHOD,
    **dict.fromkeys(kinds("class_declaration interface_declaration enum_declaration record_declaration"), TYPE),
}
_JAVA_SCOPES = _JAVA_WALLS | kinds(
    "block constructor_body for_statement enhanced_for_statement lambda_expression switch_block catch_clause "
    "try_with_resources_statement switch_rule"
)

_CSHARP_WALLS = kinds(
    "method_declaration constructor_declaration local_function_statement lambda_expression declaration_list "
    "anonymous_method_expression accessor_declaration operator_declaration compilation_unit "
    "enum_member_declaration_list delegate_declaration class_declaration record_declaration struct_declaration"
)
_CSHARP_METHOD = Role(
    space="method", signature="parameters type_parameters type_parameter_list", weight=_unless_partial
)
_CSHARP_ROLES = {
    "variable_declarator": Role(),
    "parameter": Role(),
    "foreach_statement": Role("left", within=True),
    "catch_declaration": Role(),
    "declaration_expression": Role(),
    "property_declaration": Role(),
    "enum_member_declaration": Role(),
    "method_declaration": _CSHARP_METHOD,
    "constructor_declaration": _CSHARP_METHOD,
    "enum_declaration": TYPE,
}
_CSHARP_SCOPES = _CSHARP_WALLS | kinds(
    "block for_statement foreach_statement using_statement fixed_statement switch_body switch_expression_arm "
    "catch_clause"
)

_SCRIPT_FUNCTIONS = kinds(
    "function_declaration function_expression generator_function generator_function_declaration arrow_function "
    "method_definition function_signature method_signature abstract_method_signature function_type call_signature "
    "construct_signature constructor_type"
)
_SCRIPT_ROLES = {
    "variable_declarator": Role(weight=_lexical),
    "class_declaration": Role(),
    "abstract_class_declaration": Role(),
    "function_declaration": Role(weight=0),
    "generator_function_declaration": Role(weight=0),
    "formal_parameters": Role("*", weight=1),
    "required_parameter": Role("pattern", weight=1),
    "optional_parameter": Role("pattern", weight=1),
    "arrow_function": Role("parameter", weight=1, within=True),
    "catch_clause": Role("parameter", weight=1, within=True),
    "import_specifier": Role("alias name"),
    "import_clause": Role(""),
    "namespace_import": Role(""),
    "method_definition": Role(space="member", weight=_constructor),
    "jsx_attribute": Role("", "attribute"),
}
_SCRIPT_THROUGH = {
    "object_pattern": "*",
    "array_pattern": "*",
    "rest_pattern": "*",
    "pair_pattern": "value",
    "assignment_pattern": "left",
    "object_assignment_pattern": "left",
}
_SCRIPT_SCOPES = _SCRIPT_FUNCTIONS | kinds(
    "program statement_block switch_body catch_clause for_statement for_in_statement class_body class_static_block "
    "internal_module module jsx_opening_element jsx_self_closing_element"
)
_SCRIPT_NAMES = "identifier property_identifier shorthand_property_identifier_pattern"


def _script(language: str, names: str) -> Once:
    bodies, owners = kinds("statement_block"), _SCRIPT_FUNCTIONS | {"catch_clause"}
    return Once(language, names, _SCRIPT_ROLES, _SCRIPT_SCOPES, _SCRIPT_THROUGH, bodies, owners)


_GO_FUNCTIONS = kinds("function_declaration method_declaration func_literal")
_GO_ROLES = {
    "var_spec": Role(),
    "const_spec": Role(),
    "parameter_declaration": Role(),
    "variadic_parameter_declaration": Role(),
    "short_var_declaration": Role("left", renews=_renews),
    "type_spec": Role(),
    "type_alias": Role(),
    "function_declaration": Role(weight=_go_function),
    "method_declaration": Role(space="method", signature="receiver"),
    "field_declaration": MEMBER,
    "keyed_element": KEY,
    "expression_case": Role("value", "case", _literal),
}
_GO_SCOPES = _GO_FUNCTIONS | kinds(
    "source_file block for_statement if_statement expression_switch_statement type_switch_statement select_statement "
    "expression_case type_case default_case communication_case field_declaration_list literal_value function_type "
    "method_elem method_spec"
)

_ITEM, _TYPE_ITEM = Role(weight=_apart), Role(space="type", weight=_apart)
_RUST_ROLES = {
    "function_item": _ITEM,
    "const_item": _ITEM,
    "static_item": _ITEM,
    **dict.fromkeys(kinds("struct_item enum_item union_item trait_item type_item mod_item"), _TYPE_ITEM),
    "field_declaration": Role(space="member", weight=_apart),
    "enum_variant": Role(space="member", weight=_apart),
    "field_initializer": Role("field", "key"),
    "shorthand_field_initializer": Role("", "key"),
    "parameter": Role("pattern", "parameter"),
    "closure_parameters": Role("*", "parameter"),
}
_RUST_THROUGH = dict.fromkeys(kinds("mut_pattern ref_pattern reference_pattern tuple_pattern slice_pattern"), "*")
_RUST_SCOPES = kinds(
    "source_file declaration_list block function_item function_signature_item closure_expression "
    "field_declaration_list enum_variant_list field_initializer_list"
)

_PHP_ROLES = {
    "function_definition": Role(space="function"),
    "method_declaration": Role(space="method"),
    "property_element": MEMBER,
    "const_element": Role("", "constant"),
    "enum_case": Role(space="constant"),
    "simple_parameter": Role(),
    "variadic_parameter": Role(),
    **dict.fromkeys(kinds("class_declaration interface_declaration trait_declaration enum_declaration"), TYPE),
}
_PHP_SCOPES = kinds(
    "program compound_statement declaration_list enum_declaration_list function_definition method_declaration "
    "anonymous_function arrow_function namespace_definition"
)
_RUBY_ROLES = {
    "method_parameters": Role("*"),
    "block_parameters": Role("*"),
    "lambda_parameters": Role("*"),
    **dict.fromkeys(
        kinds("optional_parameter keyword_parameter splat_parameter hash_splat_parameter block_parameter"), Role()
    ),
}
_RUBY_SCOPES = kinds("program method singleton_method block do_block lambda")
_TOML_KEY = Role("", "key", 1)

_TABLE = (
    *C_ONCE,
    Once(
        "java",
        "identifier decimal_integer_literal character_literal string_literal",
        _JAVA_ROLES,
        _JAVA_SCOPES,
        bodies=kinds("block constructor_body"),
        owners=kinds("method_declaration constructor_declaration compact_constructor_declaration lambda_expression"),
        walls=_JAVA_WALLS,
        ordered=True,
    ),
    Once(
        "csharp",
        "identifier",
        {
            **_CSHARP_ROLES,
            **dict.fromkeys(
                kinds("class_declaration struct_declaration interface_declaration record_declaration"),
                Role(space="type", weight=_unless_partial, signature="type_parameter_list"),
            ),
        },
        _CSHARP_SCOPES,
        bodies=kinds("block"),
        owners=kinds("method_declaration constructor_declaration local_function_statement lambda_expression"),
        walls=_CSHARP_WALLS,
    ),
    _script("javascript", _SCRIPT_NAMES),
    _script("typescript", f"{_SCRIPT_NAMES} type_identifier"),
    _script("tsx", f"{_SCRIPT_NAMES} type_identifier"),
    Once(
        "go",
        "identifier field_identifier type_identifier int_literal interpreted_string_literal rune_literal",
        _GO_ROLES,
        _GO_SCOPES,
        {"expression_list": "*", "literal_element": "*"},
        kinds("block"),
        _GO_FUNCTIONS,
    ),
    Once("rust", "identifier field_identifier type_identifier", _RUST_ROLES, _RUST_SCOPES, _RUST_THROUGH),
    Once("php", "name variable_name", _PHP_ROLES, _PHP_SCOPES),
    Once("ruby", "identifier", _RUBY_ROLES, _RUBY_SCOPES, {"destructured_parameter": "*"}),
    Once(
        "lua",
        "identifier",
        {"label_statement": Role("")},
        kinds("chunk block function_declaration function_definition"),
    ),
    Once("json", "string", {"pair": KEY}, kinds("object")),
    Once(
        "yaml",
        "flow_node",
        {"block_mapping_pair": KEY, "flow_pair": Role("key", "key", _single)},
        kinds("block_mapping flow_mapping"),
    ),
    Once(
        "toml",
        "bare_key quoted_key dotted_key",
        {"pair": _TOML_KEY, "table": Role("", "key", _table)},
        kinds("document table table_array_element inline_table"),
    ),
    Once("html", "attribute_name", {"attribute": Role("", "attribute")}, kinds("start_tag self_closing_tag")),
)
ONCE = {once.language: once for once in _TABLE}
