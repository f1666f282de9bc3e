"""C#."""

from tree_sitter import Node

from lacuna_model.languages.java import JAVA_LEXICON
from lacuna_model.languages.language import CLASH, TYPE, Declarations, Language, Role, kinds


def _unless_partial(holder: Node, _child: Node) -> int:
    """The weight of a type or method, 0 for one that is ``partial`` and may have several parts."""
    return 0 if any(one.text == b"partial" for one in holder.children) else CLASH


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

CSHARP = Language(
    "csharp",
    (".cs",),
    "tree_sitter_c_sharp",
    aliases=("c#", "c_sharp", "cs"),
    lexicon=JAVA_LEXICON,
    declarations=Declarations(
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
    definitions=("csharp",),
)
