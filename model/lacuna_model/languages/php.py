"""PHP."""

from lacuna_model.languages.language import MEMBER, TYPE, Declarations, Language, Lexicon, Role, kinds

_LEXICON = Lexicon(
    heads=(b"", b"function x() ", b"class x ", b"switch ($x) ", b"if ($x) "),
    line_comment=(b"//", b"#"),
    operand=b"$x",
)
_PHP_ROLES = {
    "function_definition": Role(space="function"),
    "method_declaration": Role(space="method"),
    "property_element": MEMBER,
    "const_element": Role("", "constant"),
    **dict.fromkeys(kinds("simple_parameter variadic_parameter"), Role()),
    **dict.fromkeys(kinds("class_declaration interface_declaration trait_declaration enum_declaration"), TYPE),
}
_PHP_SCOPES = kinds(
    "program compound_statement declaration_list enum_declaration_list function_definition method_declaration "
    "anonymous_function arrow_function namespace_definition"
)

PHP = Language(
    "php",
    (".php",),
    "tree_sitter_php",
    "language_php",
    lexicon=_LEXICON,
    declarations=Declarations("name variable_name", _PHP_ROLES, _PHP_SCOPES),
    definitions=("php",),
)
