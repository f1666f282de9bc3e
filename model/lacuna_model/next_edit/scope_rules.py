"""Where names are declared and how far they reach, as a table for each language: kinds of nodes and their fields.

A place in the tree is ``kind.field`` of a node and the field that leads down to the name; ``kind.`` stands for children
without a field.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ScopeRules:
    """The scopes of one language.

    ``names`` are leaves that may be variables, ``scopes`` the nodes that declarations end with; ``functions`` and
    ``classes`` are among them. ``declares`` are places where a name is declared, also through the places ``through``.
    What lies ``outside`` a scope belongs to the one around it.

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


def _rules(
    *, members: Mapping[str, str] | None = None, ordered: bool = False, renews: bool = False, **words: str
) -> ScopeRules:
    """The rules of a language, from words between blanks; its functions and classes are scopes, too.

    The nodes ``named`` declare their ``name`` outside of themselves.
    """
    sets = {name: frozenset(text.split()) for name, text in words.items()}
    places = {f"{kind}.name" for kind in sets.pop("named", ())}
    sets |= {name: sets.get(name, frozenset()) | places for name in ("declares", "outside")}
    sets["scopes"] = frozenset().union(*(sets.get(name, ()) for name in ("scopes", "functions", "classes")))
    return ScopeRules(members=members or {}, ordered=ordered, renews=renews, **sets)


_PYTHON = _rules(
    names="identifier",
    scopes="list_comprehension set_comprehension dictionary_comprehension generator_expression",
    functions="function_definition lambda",
    classes="class_definition",
    closed="class_definition",
    declares="""assignment.left augmented_assignment.left for_statement.left for_in_clause.left
        named_expression.name parameters. lambda_parameters. default_parameter.name typed_default_parameter.name
        typed_parameter. import_statement.name import_from_statement.name aliased_import.alias as_pattern.alias
        as_pattern. case_pattern. splat_pattern.""",
    named="function_definition class_definition",
    through="""list_splat_pattern. dictionary_splat_pattern. pattern_list. tuple_pattern. list_pattern. tuple. list.
        as_pattern_target. dotted_name.""",
    outside="""function_definition.return_type class_definition.superclasses default_parameter.value
        typed_default_parameter.value typed_parameter.type typed_default_parameter.type""",
    members={"attribute.attribute": "object"},
    keywords="keyword_argument.name keyword_pattern.",
    passes="global_statement nonlocal_statement",
)

_SCRIPT = _rules(
    names="identifier type_identifier shorthand_property_identifier shorthand_property_identifier_pattern",
    scopes="""type_alias_declaration statement_block for_statement for_in_statement catch_clause switch_body
        function_type""",
    functions="""function_declaration generator_function_declaration function_expression generator_function
        arrow_function method_definition function_signature method_signature abstract_method_signature""",
    classes="class_declaration abstract_class_declaration class interface_declaration",
    declares="""variable_declarator.name formal_parameters. arrow_function.parameter catch_clause.parameter
        for_in_statement.left function_expression.name required_parameter.pattern optional_parameter.pattern
        type_parameter.name import_clause. namespace_import. import_specifier.name import_specifier.alias
        enum_declaration.name""",
    named="""function_declaration generator_function_declaration class_declaration abstract_class_declaration
        interface_declaration type_alias_declaration function_signature""",
    through="""object_pattern. array_pattern. rest_pattern. pair_pattern.value assignment_pattern.left
        object_assignment_pattern.left""",
    members={"member_expression.property": "object", "pair.key": "", "pair_pattern.key": ""},
    fields="""field_definition.property public_field_definition.name method_definition.name property_signature.name
        method_signature.name abstract_method_signature.name""",
    keys="property_identifier statement_identifier",
    tags="jsx_opening_element.name jsx_closing_element.name jsx_self_closing_element.name",
    keywords="jsx_attribute.",
    shorthand="shorthand_property_identifier shorthand_property_identifier_pattern",
    hoisted="variable_declaration",
)

_GO = _rules(
    names="identifier type_identifier package_identifier",
    scopes="""block for_statement if_statement expression_switch_statement type_switch_statement select_statement
        expression_case type_case default_case communication_case""",
    functions="function_declaration method_declaration func_literal",
    declares="""short_var_declaration.left var_spec.name const_spec.name parameter_declaration.name
        variadic_parameter_declaration.name range_clause.left type_spec.name type_alias.name
        import_spec.name type_switch_statement.alias receive_statement.left
        type_parameter_declaration.name""",
    through="expression_list. literal_element.",
    named="function_declaration",
    members={"selector_expression.field": "operand", "keyed_element.key": ""},
    fields="field_declaration.name",
    keys="field_identifier label_name",
    ordered=True,
)

# C and C++: what C does not have never stands in its trees.
_C = _rules(
    names="identifier type_identifier",
    scopes="""function_declarator compound_statement for_statement preproc_function_def for_range_loop catch_clause
        if_statement while_statement switch_statement template_declaration""",
    functions="function_definition lambda_expression",
    classes="class_specifier struct_specifier",
    declares="""init_declarator.declarator declaration.declarator parameter_declaration.declarator
        function_definition.declarator enumerator.name preproc_def.name preproc_params.
        type_definition.declarator optional_parameter_declaration.declarator for_range_loop.declarator
        structured_binding_declarator. alias_declaration.name type_parameter_declaration.
        lambda_capture_initializer.left""",
    through="""pointer_declarator.declarator array_declarator.declarator function_declarator.declarator
        parenthesized_declarator. reference_declarator. structured_binding_declarator.""",
    named="preproc_function_def",
    outside="function_declarator.declarator class_specifier.name struct_specifier.name",
    members={"field_expression.field": "argument", "field_initializer.": ""},
    fields="field_declaration.declarator",
    keys="field_identifier statement_identifier",
    ordered=True,
)

_JAVA = _rules(
    names="identifier type_identifier",
    scopes="""block constructor_body for_statement enhanced_for_statement try_with_resources_statement catch_clause
        switch_block_statement_group switch_rule""",
    functions="method_declaration constructor_declaration compact_constructor_declaration lambda_expression",
    classes="class_declaration interface_declaration enum_declaration record_declaration",
    declares="""variable_declarator.name formal_parameter.name catch_formal_parameter.name resource.name
        enhanced_for_statement.name lambda_expression.parameters inferred_parameters. instanceof_expression.name
        type_pattern. enum_constant.name type_parameter.""",
    named="class_declaration interface_declaration enum_declaration record_declaration method_declaration",
    outside="constructor_declaration.name",
    members={"field_access.field": "object", "method_invocation.name": "object", "element_value_pair.key": ""},
    ordered=True,
)

_RUST = _rules(
    names="identifier type_identifier shorthand_field_identifier",
    scopes="type_item block for_expression match_arm if_expression while_expression",
    functions="function_item closure_expression function_signature_item",
    classes="struct_item enum_item impl_item trait_item",
    declares="""let_declaration.pattern parameter.pattern closure_parameters. for_expression.pattern
        let_condition.pattern match_arm.pattern const_item.name static_item.name mod_item.name type_parameter.name
        use_as_clause.alias macro_definition.name""",
    named="function_item struct_item enum_item trait_item type_item",
    through="""tuple_pattern. slice_pattern. reference_pattern. ref_pattern. mut_pattern. tuple_struct_pattern.
        struct_pattern. field_pattern.name field_pattern.pattern captured_pattern. match_pattern. or_pattern.""",
    members={"field_expression.field": "value", "field_initializer.field": ""},
    fields="field_declaration.name",
    keys="field_identifier",
    shorthand="shorthand_field_identifier shorthand_field_initializer.",
    ordered=True,
    renews=True,
)

_CSHARP = _rules(
    names="identifier implicit_parameter",
    scopes="block foreach_statement for_statement catch_clause using_statement switch_section",
    functions="""method_declaration constructor_declaration local_function_statement lambda_expression
        anonymous_method_expression""",
    classes="class_declaration struct_declaration record_declaration interface_declaration",
    declares="""variable_declarator.name parameter.name foreach_statement.left catch_declaration.name
        declaration_pattern.name declaration_expression.name property_declaration.name lambda_expression.parameters
        type_parameter.name""",
    named="""class_declaration struct_declaration record_declaration interface_declaration method_declaration
        local_function_statement""",
    outside="constructor_declaration.name",
    members={"member_access_expression.name": "expression"},
    keywords="argument.name attribute_argument.name anonymous_object_creation_expression. with_initializer.",
    ordered=True,
)

_KOTLIN = _rules(
    names="identifier",
    scopes="block for_statement catch_block when_entry",
    functions="function_declaration lambda_literal anonymous_function secondary_constructor",
    classes="class_declaration object_declaration",
    declares="parameter. class_parameter. variable_declaration. catch_block.",
    named="function_declaration class_declaration object_declaration",
    members={"navigation_expression.": ""},
    keywords="value_argument.",
    ordered=True,
)

_LUA = _rules(
    names="identifier",
    scopes="block for_statement",
    functions="function_declaration function_definition",
    declares="variable_declaration. parameters.name for_numeric_clause.name for_generic_clause.",
    named="function_declaration",
    through="variable_list.name assignment_statement.",
    members={"dot_index_expression.field": "table", "method_index_expression.method": "table", "field.name": ""},
    ordered=True,
    renews=True,
)

_PHP = _rules(
    names="variable_name.",
    functions="function_definition method_declaration anonymous_function",
    classes="class_declaration trait_declaration",
    declares="variable_name.",
    through="variable_name.",
    members={"member_access_expression.name": "object", "scoped_property_access_expression.name": "scope"},
    keys="name",
    keywords="argument.name",
    passes="global_declaration anonymous_function_use_clause",
)

_RUBY = _rules(
    names="identifier",
    scopes="block do_block lambda class module",
    functions="method singleton_method",
    closed="class module method singleton_method",
    declares="""assignment.left operator_assignment.left method_parameters. block_parameters. lambda_parameters.
        optional_parameter.name splat_parameter.name keyword_parameter.name hash_splat_parameter.name
        block_parameter.name for.pattern exception_variable.""",
    through="left_assignment_list. destructured_parameter. rest_assignment.",
    outside="method.name singleton_method.name",
    members={"call.method": "receiver"},
    keys="instance_variable class_variable global_variable simple_symbol",
    keywords="hash_key_symbol",
    hoisted="assignment operator_assignment",
)

_BASH = _rules(
    names="variable_name",
    functions="function_definition",
    declares="declaration_command.",
    through="variable_assignment.name",
)

RULES: Mapping[str, ScopeRules] = {
    "python": _PYTHON,
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "tsx": _SCRIPT,
    "go": _GO,
    "c": _C,
    "cpp": _C,
    "java": _JAVA,
    "rust": _RUST,
    "csharp": _CSHARP,
    "kotlin": _KOTLIN,
    "lua": _LUA,
    "php": _PHP,
    "ruby": _RUBY,
    "bash": _BASH,
}
