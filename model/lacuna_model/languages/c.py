"""C and C++."""

from tree_sitter import Node

from lacuna_model.languages.javascript import DO
from lacuna_model.languages.language import CLASH, Declarations, Language, Lexicon, Role, Rules, kinds, texts
from lacuna_model.languages.predicates import ONE_LINE, Predicate, inside, macro, never, text_matches

_NUMBERS = (rb"(?<!\w)\d\w*(?:'\w+)+",)  # with separators
_C_STATEMENTS = kinds(
    "if_statement for_statement while_statement do_statement switch_statement return_statement break_statement "
    "continue_statement goto_statement labeled_statement case_statement compound_statement "
    "throw_statement try_statement for_range_loop co_return_statement co_yield_statement"
)
# Places at the top level, in a namespace, in a block of extern "C", between preprocessor conditions.
_C_TOPS = "translation_unit declaration_list preproc_if preproc_ifdef preproc_else"
_C_PLACES = "".join(f"({top} (_) @top)\n({top} (expression_statement (_) @macro))\n" for top in _C_TOPS.split())
_C_PLACES += """
(function_definition type: [(type_identifier) (primitive_type)] @type declarator: [(identifier) (field_identifier)])
(string_literal) @line
(compound_statement (function_definition !type declarator: (function_declarator declarator: (identifier) @loop)))
(compound_statement (function_definition type: (type_identifier) @loop declarator: (parenthesized_declarator)))
"""
_PLAIN_C_PLACES = f"""{_C_PLACES}
(compound_statement (function_definition type: (_) declarator: (function_declarator)) @stray)
"""
_in_body = inside(kinds("compound_statement"))
_C_WORDS = (
    "auto break case char const continue do double else enum extern float for goto if int long register return short "
    "signed sizeof static struct switch typedef union unsigned void volatile while"
)
_C_FITS: dict[str, Predicate] = {
    "stray": never,
    "top": lambda node: node.type not in _C_STATEMENTS or _in_body(node),
    "macro": lambda node: macro(node) or _in_body(node),
    "line": ONE_LINE,
    "loop": text_matches(rb"[A-Z_]\w*|(?i:.*(?:for|each|loop|while).*)"),
    "type": text_matches(rb"class|namespace"),  # words of C++ in a header that is read as C
}
_C_LASTING = frozenset({"top", "macro", "type"})
_C_QUOTING = kinds(
    "argument_list binary_expression preproc_def preproc_function_def preproc_params preproc_ifdef preproc_defined "
    "preproc_call attribute"
)


def _given(declaration: Node) -> int:
    """Return a clashing weight, or for an ``extern`` declaration one that never clashes."""
    return -CLASH if any(one.text == b"extern" for one in declaration.children) else CLASH


def _is_function(declarator: Node | None) -> bool:
    """Whether a declarator declares a function, a pointer to one, or a macro that looks like one."""
    while declarator is not None and declarator.type != "function_declarator":
        inner = declarator.child_by_field_name("declarator")
        declarator = declarator.named_children[0] if declarator.type == "reference_declarator" else inner
    return declarator is not None


def _unless_function(_holder: Node, declarator: Node) -> int:
    """Return a clashing weight, or 0 for a function."""
    return 0 if _is_function(declarator) else CLASH


def _c_variable(declaration: Node, declarator: Node) -> int:
    """The weight of a variable: at the top level of C it may be declared again, unless both give it a value."""
    if _is_function(declarator):
        return 0
    outside = declaration.parent is not None and declaration.parent.type not in _C_LOCAL
    return int(declarator.type == "init_declarator") if outside else _given(declaration)


def _defined(holder: Node, _child: Node) -> int:
    """Return 1 for a type with a body, 0 for one that is only named."""
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
    "struct_specifier union_specifier enum_specifier class_specifier": Role(space="type", weight=_defined),
}
_C_THROUGH = {
    "init_declarator pointer_declarator array_declarator function_declarator": "declarator",
    "parenthesized_declarator": "*",
}
_C_NAMES = "identifier field_identifier type_identifier statement_identifier number_literal char_literal"
_C_BODIES = kinds("compound_statement")

C = Language(
    "c",
    (".c", ".h"),
    "tree_sitter_c",
    lexicon=Lexicon(
        atoms=_NUMBERS,
        heads=texts("void x() ||struct x |x = |switch (x) |enum x |if (x) |do "),
        tails=(DO,),
        conditionals=True,
    ),
    rules=Rules(_PLAIN_C_PLACES, _C_FITS, _C_WORDS, _C_QUOTING, _C_LASTING),
    declarations=Declarations(_C_NAMES, _C_ROLES, _C_SCOPES, _C_THROUGH, _C_BODIES, kinds("function_definition")),
    definitions=("c",),
)


_CPP_WORDS = (
    f"{_C_WORDS} bool catch class decltype delete explicit false friend inline mutable namespace new private "
    "protected public template this throw true try typename using virtual"
)


def _cpp_variable(declaration: Node, declarator: Node) -> int:
    return 0 if _is_function(declarator) else _given(declaration)


_CPP_ROLES = _C_ROLES | {
    "declaration": Role("declarator", weight=_cpp_variable),
    "function_definition": Role("declarator", weight=0),  # functions may be overloaded
    "field_declaration": Role("declarator", "member", _unless_function),
    "optional_parameter_declaration": Role("declarator"),
    "for_range_loop": Role("declarator", within=True),
}
_CPP_OWN = kinds("lambda_expression for_range_loop catch_clause")
_CPP_SCOPES = (
    _C_SCOPES
    | _CPP_OWN
    | kinds("declaration_list template_parameter_list optional_parameter_declaration alias_declaration")
    | kinds("if_statement while_statement switch_statement requires_expression template_instantiation")
)

CPP = Language(
    "cpp",
    (".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx"),
    "tree_sitter_cpp",
    aliases=("c++", "cxx"),
    lexicon=Lexicon(
        declarations=(b"class x;",),
        atoms=_NUMBERS,
        raw=((b'R"(', b')"'),),
        heads=texts("void x() ||struct x |namespace x |x = |switch (x) |if (x) |auto x = [] |try "),
        tails=(DO, (b"try", b" catch (...) {}")),
        conditionals=True,
    ),
    rules=Rules(_C_PLACES, _C_FITS, _CPP_WORDS, _C_QUOTING, _C_LASTING),
    declarations=Declarations(
        _C_NAMES,
        _CPP_ROLES,
        _CPP_SCOPES,
        _C_THROUGH | {"reference_declarator structured_binding_declarator": "*"},
        _C_BODIES,
        _CPP_OWN | kinds("function_definition for_statement if_statement while_statement"),
    ),
    definitions=("c", "cpp"),
)
