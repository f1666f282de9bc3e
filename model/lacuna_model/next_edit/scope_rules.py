"""Where names are declared and how far they reach, as a table for each language: kinds of nodes and their fields.

A place in the tree is ``kind.field`` of a node and the field that leads down to the name; ``kind.`` stands for children
without a field.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True)
class ScopeRules:
    """The scopes of one language.

    ``names`` are leaves that may be variables, ``scopes`` the nodes that declarations end with; ``functions`` and
    ``classes`` are among them, and ``bodies`` belong to the function around them. ``declares`` are places where a name
    is declared, also through the places ``through``. What lies ``outside`` a scope belongs to the one around it.

    ``members`` are places behind a dot, with the field of what stands before it ("": it is not told), ``fields`` those
    that declare a member of the class around. ``keys`` are leaves that name members, keys or labels, not variables.
    ``tags`` are places where a name in lower case is an element of HTML. ``keywords`` are names of a callee's
    parameters: leaves, or places; one without a field is meant where ``=`` follows. ``shorthand`` is a name that is a
    key, too. A declaration in one of ``hoisted`` is one of the whole function. Functions do not see the names
    of ``closed`` scopes around them, and ``passes`` are statements that name variables of an outer scope. Where
    declarations are ``ordered``, they reach only what follows; where one ``renews`` a name, it is another variable.
    """

    names: frozenset[str]
    scopes: frozenset[str]
    functions: frozenset[str]
    declares: frozenset[str]
    outside: frozenset[str] = frozenset()
    through: frozenset[str] = frozenset()
    bodies: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    members: Mapping[str, str] = field(default_factory=dict)
    fields: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    keywords: frozenset[str] = frozenset()
    shorthand: frozenset[str] = frozenset()
    hoisted: frozenset[str] = frozenset()
    passes: frozenset[str] = frozenset()
    ordered: bool = False
    renews: bool = False


_PYTHON = ScopeRules(
    names=_words("identifier"),
    scopes=_words(
        "function_definition lambda class_definition list_comprehension set_comprehension dictionary_comprehension "
        "generator_expression"
    ),
    functions=_words("function_definition lambda"),
    classes=_words("class_definition"),
    closed=_words("class_definition"),
    declares=_words(
        "assignment.left augmented_assignment.left for_statement.left for_in_clause.left named_expression.name "
        "parameters. lambda_parameters. default_parameter.name typed_default_parameter.name typed_parameter. "
        "function_definition.name class_definition.name import_statement.name import_from_statement.name "
        "aliased_import.alias as_pattern.alias as_pattern. case_pattern. splat_pattern."
    ),
    through=_words(
        "list_splat_pattern. dictionary_splat_pattern. pattern_list. tuple_pattern. list_pattern. tuple. list. "
        "as_pattern_target. dotted_name."
    ),
    outside=_words(
        "function_definition.name function_definition.return_type class_definition.name class_definition.superclasses "
        "default_parameter.value typed_default_parameter.value typed_parameter.type typed_default_parameter.type"
    ),
    members={"attribute.attribute": "object"},
    keywords=_words("keyword_argument.name keyword_pattern."),
    passes=_words("global_statement nonlocal_statement"),
)

_SCRIPT_FUNCTIONS = (
    "function_declaration generator_function_declaration function_expression generator_function arrow_function "
    "method_definition function_signature method_signature abstract_method_signature"
)
_SCRIPT = ScopeRules(
    names=_words("identifier type_identifier shorthand_property_identifier shorthand_property_identifier_pattern"),
    scopes=_words(
        f"{_SCRIPT_FUNCTIONS} class_declaration abstract_class_declaration class interface_declaration "
        "type_alias_declaration statement_block for_statement for_in_statement catch_clause switch_body function_type"
    ),
    functions=_words(_SCRIPT_FUNCTIONS),
    classes=_words("class_declaration abstract_class_declaration class interface_declaration"),
    bodies=_words("statement_block"),
    declares=_words(
        "variable_declarator.name formal_parameters. arrow_function.parameter catch_clause.parameter "
        "for_in_statement.left function_declaration.name generator_function_declaration.name function_expression.name "
        "class_declaration.name abstract_class_declaration.name interface_declaration.name type_alias_declaration.name "
        "function_signature.name required_parameter.pattern optional_parameter.pattern type_parameter.name "
        "import_clause. namespace_import. import_specifier.name import_specifier.alias enum_declaration.name"
    ),
    through=_words(
        "object_pattern. array_pattern. rest_pattern. pair_pattern.value assignment_pattern.left "
        "object_assignment_pattern.left"
    ),
    outside=_words(
        "function_declaration.name generator_function_declaration.name class_declaration.name "
        "abstract_class_declaration.name interface_declaration.name type_alias_declaration.name function_signature.name"
    ),
    members={"member_expression.property": "object", "pair.key": "", "pair_pattern.key": ""},
    fields=_words(
        "field_definition.property public_field_definition.name method_definition.name property_signature.name "
        "method_signature.name abstract_method_signature.name"
    ),
    keys=_words("property_identifier statement_identifier"),
    tags=_words("jsx_opening_element.name jsx_closing_element.name jsx_self_closing_element.name"),
    keywords=_words("jsx_attribute."),
    shorthand=_words("shorthand_property_identifier shorthand_property_identifier_pattern"),
    hoisted=_words("variable_declaration"),
)

_GO_FUNCTIONS = "function_declaration method_declaration func_literal"
_GO = ScopeRules(
    names=_words("identifier type_identifier package_identifier"),
    scopes=_words(
        f"{_GO_FUNCTIONS} block for_statement if_statement expression_switch_statement type_switch_statement "
        "select_statement expression_case type_case default_case communication_case"
    ),
    functions=_words(_GO_FUNCTIONS),
    bodies=_words("block"),
    declares=_words(
        "short_var_declaration.left var_spec.name const_spec.name parameter_declaration.name "
        "variadic_parameter_declaration.name range_clause.left type_spec.name type_alias.name "
        "function_declaration.name import_spec.name type_switch_statement.alias receive_statement.left "
        "type_parameter_declaration.name"
    ),
    through=_words("expression_list. literal_element."),
    outside=_words("function_declaration.name"),
    members={"selector_expression.field": "operand", "keyed_element.key": ""},
    fields=_words("field_declaration.name"),
    keys=_words("field_identifier label_name"),
    ordered=True,
)

_C_SCOPES = "function_definition function_declarator compound_statement for_statement preproc_function_def"
_C_DECLARES = (
    "init_declarator.declarator declaration.declarator parameter_declaration.declarator function_definition.declarator "
    "enumerator.name preproc_def.name preproc_function_def.name preproc_params. type_definition.declarator"
)
_C_THROUGH = (
    "pointer_declarator.declarator array_declarator.declarator function_declarator.declarator parenthesized_declarator."
)
_C_NAMES = _words("identifier type_identifier")
_C_MEMBERS = {"field_expression.field": "argument"}
_C_FIELDS = _words("field_declaration.declarator")
_C_KEYS = _words("field_identifier statement_identifier")
_C = ScopeRules(
    names=_C_NAMES,
    scopes=_words(_C_SCOPES),
    functions=_words("function_definition"),
    bodies=_words("compound_statement function_declarator"),
    declares=_words(_C_DECLARES),
    through=_words(_C_THROUGH),
    outside=_words("function_declarator.declarator preproc_function_def.name"),
    members=_C_MEMBERS,
    fields=_C_FIELDS,
    keys=_C_KEYS,
    ordered=True,
)
_CPP = ScopeRules(
    names=_C_NAMES,
    scopes=_words(
        f"{_C_SCOPES} lambda_expression for_range_loop catch_clause if_statement while_statement switch_statement "
        "template_declaration class_specifier struct_specifier"
    ),
    functions=_words("function_definition lambda_expression"),
    bodies=_words("compound_statement function_declarator"),
    classes=_words("class_specifier struct_specifier"),
    declares=_words(
        f"{_C_DECLARES} optional_parameter_declaration.declarator for_range_loop.declarator "
        "structured_binding_declarator. alias_declaration.name type_parameter_declaration. "
        "lambda_capture_initializer.left"
    ),
    through=_words(f"{_C_THROUGH} reference_declarator. structured_binding_declarator."),
    outside=_words(
        "function_declarator.declarator preproc_function_def.name class_specifier.name struct_specifier.name"
    ),
    members={**_C_MEMBERS, "field_initializer.": ""},
    fields=_C_FIELDS,
    keys=_C_KEYS,
    ordered=True,
)

_JAVA_CLASSES = "class_declaration interface_declaration enum_declaration record_declaration"
_JAVA = ScopeRules(
    names=_words("identifier type_identifier"),
    scopes=_words(
        f"{_JAVA_CLASSES} method_declaration constructor_declaration compact_constructor_declaration lambda_expression "
        "block constructor_body for_statement enhanced_for_statement try_with_resources_statement catch_clause "
        "switch_block_statement_group switch_rule"
    ),
    functions=_words("method_declaration constructor_declaration compact_constructor_declaration lambda_expression"),
    bodies=_words("block constructor_body"),
    classes=_words(_JAVA_CLASSES),
    declares=_words(
        "variable_declarator.name formal_parameter.name catch_formal_parameter.name resource.name "
        "enhanced_for_statement.name lambda_expression.parameters inferred_parameters. instanceof_expression.name "
        "type_pattern. class_declaration.name interface_declaration.name enum_declaration.name record_declaration.name "
        "method_declaration.name enum_constant.name type_parameter."
    ),
    outside=_words(
        "class_declaration.name interface_declaration.name enum_declaration.name record_declaration.name "
        "method_declaration.name constructor_declaration.name"
    ),
    members={"field_access.field": "object", "method_invocation.name": "object", "element_value_pair.key": ""},
    ordered=True,
)

_RUST_ITEMS = "struct_item enum_item trait_item impl_item type_item"
_RUST_FUNCTIONS = "function_item closure_expression function_signature_item"
_RUST = ScopeRules(
    names=_words("identifier type_identifier shorthand_field_identifier"),
    scopes=_words(f"{_RUST_FUNCTIONS} {_RUST_ITEMS} block for_expression match_arm if_expression while_expression"),
    functions=_words(_RUST_FUNCTIONS),
    bodies=_words("block"),
    classes=_words("struct_item enum_item impl_item trait_item"),
    declares=_words(
        "let_declaration.pattern parameter.pattern closure_parameters. for_expression.pattern let_condition.pattern "
        "match_arm.pattern const_item.name static_item.name function_item.name struct_item.name enum_item.name "
        "trait_item.name mod_item.name type_item.name type_parameter.name use_as_clause.alias macro_definition.name"
    ),
    through=_words(
        "tuple_pattern. slice_pattern. reference_pattern. ref_pattern. mut_pattern. tuple_struct_pattern. "
        "struct_pattern. field_pattern.name field_pattern.pattern captured_pattern. match_pattern. or_pattern."
    ),
    outside=_words("function_item.name struct_item.name enum_item.name trait_item.name type_item.name"),
    members={"field_expression.field": "value", "field_initializer.field": ""},
    fields=_words("field_declaration.name"),
    keys=_words("field_identifier"),
    shorthand=_words("shorthand_field_identifier shorthand_field_initializer."),
    ordered=True,
    renews=True,
)

_CSHARP_CLASSES = "class_declaration struct_declaration record_declaration interface_declaration"
_CSHARP_FUNCTIONS = (
    "method_declaration constructor_declaration local_function_statement lambda_expression anonymous_method_expression"
)
_CSHARP = ScopeRules(
    names=_words("identifier implicit_parameter"),
    scopes=_words(
        f"{_CSHARP_CLASSES} {_CSHARP_FUNCTIONS} block foreach_statement for_statement catch_clause using_statement "
        "switch_section"
    ),
    functions=_words(_CSHARP_FUNCTIONS),
    bodies=_words("block"),
    classes=_words(_CSHARP_CLASSES),
    declares=_words(
        "variable_declarator.name parameter.name foreach_statement.left catch_declaration.name "
        "declaration_pattern.name declaration_expression.name local_function_statement.name method_declaration.name "
        "class_declaration.name "
        "struct_declaration.name record_declaration.name interface_declaration.name property_declaration.name "
        "lambda_expression.parameters type_parameter.name"
    ),
    outside=_words(
        "class_declaration.name struct_declaration.name record_declaration.name interface_declaration.name "
        "method_declaration.name constructor_declaration.name local_function_statement.name"
    ),
    members={"member_access_expression.name": "expression"},
    keywords=_words("argument.name attribute_argument.name anonymous_object_creation_expression. with_initializer."),
    ordered=True,
)

_KOTLIN_FUNCTIONS = "function_declaration lambda_literal anonymous_function secondary_constructor"
_KOTLIN = ScopeRules(
    names=_words("identifier"),
    scopes=_words(
        f"{_KOTLIN_FUNCTIONS} class_declaration object_declaration block for_statement catch_block when_entry"
    ),
    functions=_words(_KOTLIN_FUNCTIONS),
    bodies=_words("block function_body"),
    classes=_words("class_declaration object_declaration"),
    declares=_words(
        "parameter. class_parameter. variable_declaration. catch_block. function_declaration.name "
        "class_declaration.name object_declaration.name"
    ),
    outside=_words("function_declaration.name class_declaration.name object_declaration.name"),
    members={"navigation_expression.": ""},
    keywords=_words("value_argument."),
    ordered=True,
)

_LUA = ScopeRules(
    names=_words("identifier"),
    scopes=_words("function_declaration function_definition block for_statement"),
    functions=_words("function_declaration function_definition"),
    bodies=_words("block"),
    declares=_words(
        "variable_declaration. parameters.name for_numeric_clause.name for_generic_clause. function_declaration.name"
    ),
    through=_words("variable_list.name assignment_statement."),
    outside=_words("function_declaration.name"),
    members={"dot_index_expression.field": "table", "method_index_expression.method": "table", "field.name": ""},
    ordered=True,
    renews=True,
)

_PHP_FUNCTIONS = "function_definition method_declaration anonymous_function"
_PHP = ScopeRules(
    names=_words("variable_name."),
    scopes=_words(f"{_PHP_FUNCTIONS} class_declaration trait_declaration"),
    functions=_words(_PHP_FUNCTIONS),
    classes=_words("class_declaration trait_declaration"),
    declares=_words("variable_name."),
    through=_words("variable_name."),
    members={"member_access_expression.name": "object", "scoped_property_access_expression.name": "scope"},
    keys=_words("name"),
    keywords=_words("argument.name"),
    passes=_words("global_declaration anonymous_function_use_clause"),
)

_RUBY = ScopeRules(
    names=_words("identifier"),
    scopes=_words("method singleton_method block do_block lambda class module"),
    functions=_words("method singleton_method"),
    closed=_words("class module method singleton_method"),
    declares=_words(
        "assignment.left operator_assignment.left method_parameters. block_parameters. lambda_parameters. "
        "optional_parameter.name splat_parameter.name keyword_parameter.name hash_splat_parameter.name "
        "block_parameter.name for.pattern exception_variable."
    ),
    through=_words("left_assignment_list. destructured_parameter. rest_assignment."),
    outside=_words("method.name singleton_method.name"),
    members={"call.method": "receiver"},
    keys=_words("instance_variable class_variable global_variable simple_symbol"),
    keywords=_words("hash_key_symbol"),
    hoisted=_words("assignment operator_assignment"),
)

_BASH = ScopeRules(
    names=_words("variable_name"),
    scopes=_words("function_definition"),
    functions=_words("function_definition"),
    declares=_words("declaration_command."),
    through=_words("variable_assignment.name"),
)

RULES: Mapping[str, ScopeRules] = {
    "python": _PYTHON,
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "tsx": _SCRIPT,
    "go": _GO,
    "c": _C,
    "cpp": _CPP,
    "java": _JAVA,
    "rust": _RUST,
    "csharp": _CSHARP,
    "kotlin": _KOTLIN,
    "lua": _LUA,
    "php": _PHP,
    "ruby": _RUBY,
    "bash": _BASH,
}
