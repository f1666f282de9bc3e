"""C++."""

from tree_sitter import Node

from lacuna_model.languages.c import (
    C_BODIES,
    C_FITS,
    C_LASTING,
    C_NAMES,
    C_PLACES,
    C_QUOTING,
    C_ROLES,
    C_SCOPES,
    C_THROUGH,
    C_WORDS,
    defined,
    given,
    is_function,
    unless_function,
)
from lacuna_model.languages.javascript import DO
from lacuna_model.languages.language import Declarations, Language, Lexicon, Role, Rules, kinds
from lacuna_model.languages.predicates import destroyed

_LEXICON = Lexicon(
    declarations=(b"class x;",),
    raw=((b'R"(', b')"'),),
    heads=(
        b"void x() ",
        b"",
        b"struct x ",
        b"namespace x ",
        b"x = ",
        b"switch (x) ",
        b"if (x) ",
        b"auto x = [] ",
        b"try ",
    ),
    tails=(DO, (b"try", b" catch (...) {}")),
    conditionals=True,
)
_CPP_PLACES = f"""{C_PLACES}
(template_declaration (declaration "," @stray))
(parameter_list "..." . "," @stray)
[(class_specifier) (struct_specifier)] @class
"""
_CPP_WORDS = (
    f"{C_WORDS} bool catch class decltype delete explicit false friend inline mutable namespace new private "
    "protected public template this throw true try typename using virtual"
)


def _cpp_variable(declaration: Node, declarator: Node) -> int:
    return 0 if is_function(declarator) else given(declaration)


_CPP_ROLES = C_ROLES | {
    "declaration": Role("declarator", weight=_cpp_variable),
    "function_definition": Role("declarator", weight=0),  # functions may be overloaded
    "field_declaration": Role("declarator", "member", unless_function),
    "optional_parameter_declaration": Role("declarator"),
    "for_range_loop": Role("declarator", within=True),
    "class_specifier": Role(space="type", weight=defined),
}
_CPP_OWN = kinds("lambda_expression for_range_loop catch_clause")
_CPP_SCOPES = (
    C_SCOPES
    | _CPP_OWN
    | kinds("declaration_list template_parameter_list optional_parameter_declaration alias_declaration")
    | kinds("if_statement while_statement switch_statement")
)

CPP = Language(
    "cpp",
    (".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx"),
    "tree_sitter_cpp",
    aliases=("c++", "cxx"),
    lexicon=_LEXICON,
    rules=Rules(_CPP_PLACES, C_FITS | {"class": destroyed}, _CPP_WORDS, C_QUOTING, C_LASTING),
    declarations=Declarations(
        C_NAMES,
        _CPP_ROLES,
        _CPP_SCOPES,
        C_THROUGH | {"reference_declarator": "*", "structured_binding_declarator": "*"},
        C_BODIES,
        _CPP_OWN | kinds("function_definition for_statement if_statement while_statement"),
    ),
    definitions=(
        "c",
        "cpp",
    ),
)
