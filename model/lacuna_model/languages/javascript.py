"""JavaScript and TypeScript, the latter without and with JSX elements."""

from dataclasses import replace

from tree_sitter import Node

from lacuna_model.languages.language import CLASH, Declarations, Language, Lexicon, Role, Rules, kinds, texts
from lacuna_model.languages.predicates import LOOPS, ONE_LINE, Predicate, awaited, inside, jump, matched, never

# A slash where an operand is expected: directly after a mark or ``return``, or after a mark and a space.
_REGEX_AT = rb"(?:(?<=[(,=:!&|?;\[{}])|(?<=[(,=:!&|?;\[{}] )|(?<==>)|(?<==> )|(?<=return ))"
_REGEX = _REGEX_AT + rb"/(?![*/])(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\n\\\[])+/"
DO = (b"do", b" while (x);")
_SCRIPT_LEXICON = Lexicon(
    declarations=(b"class x {}", b"x() {}"),
    quotes=(b'"', b"'", b"`"),
    atoms=(_REGEX,),
    heads=texts("|function x() |class x |if (x) |x() |x = |x: |switch (x) |interface x |try |import "),
    tails=(DO, (b"try", b" finally {}"), (b"import", b' from "x"')),
)
_SCRIPT_LOOPS = LOOPS | {"for_in_statement"}
_FUNCTIONS = kinds(
    "function_declaration function_expression generator_function generator_function_declaration arrow_function "
    "method_definition"
)
_SCRIPT_FUNCTIONS = _FUNCTIONS | {"class_static_block"}
_SCRIPT_PLACES = """
(break_statement) @break
(continue_statement) @continue
(try_statement !handler !finalizer) @stray
(object ["{" ","] . "," @stray)
(object_pattern ["{" ","] . "," @stray)
(arguments ["(" ","] . "," @stray)
(statement_block [(import_statement) (export_statement)] @module)
(lexical_declaration kind: "const" (variable_declarator !value) @constant)
(await_expression) @awaited
(string) @line
"""
_SCRIPT_FITS: dict[str, Predicate] = {
    "stray": never,
    "module": inside(kinds("module internal_module")),
    "break": jump(_SCRIPT_LOOPS | {"switch_statement"}, _SCRIPT_FUNCTIONS),
    "continue": jump(_SCRIPT_LOOPS, _SCRIPT_FUNCTIONS),
    "constant": never,
    "awaited": awaited,
    "line": lambda node: ONE_LINE(node) or (node.parent is not None and node.parent.type == "jsx_attribute"),
    "element": matched,
}
_MARKUP_PLACES = "(jsx_element) @element"
_SCRIPT_WORDS = (
    "break case catch class const continue debugger default delete do else enum export extends false finally for "
    "function if import in instanceof let new null return super switch this throw true try typeof var void while with"
)
_SCRIPT_QUOTING = kinds("export_specifier import_specifier namespace_export")


def tagged(places: str, predicates: dict[str, Predicate]) -> Rules:
    """Return the rules of a language with JSX elements."""
    firm, blamed = frozenset({"element"}), {"element": -1}
    return Rules(places + _MARKUP_PLACES, predicates, _SCRIPT_WORDS, _SCRIPT_QUOTING, firm=firm, blamed=blamed)


def _lexical(declarator: Node, _child: Node) -> int:
    """The weight of a variable: that of ``let`` and ``const`` clashes, ``var`` may repeat itself and parameters."""
    parent = declarator.parent
    return CLASH if parent is not None and parent.type == "lexical_declaration" else 0


def _constructor(method: Node, name: Node) -> int:
    return CLASH if name.text == b"constructor" and method.child_by_field_name("body") is not None else 0


_HEADS = _FUNCTIONS | kinds(
    "function_signature method_signature abstract_method_signature function_type call_signature construct_signature "
    "constructor_type"
)
_SCRIPT_ROLES = {
    "variable_declarator": Role(weight=_lexical),
    "class_declaration abstract_class_declaration": Role(),
    "function_declaration generator_function_declaration": Role(weight=0),
    "formal_parameters": Role("*", weight=1),
    "required_parameter optional_parameter": Role("pattern", weight=1),
    "arrow_function catch_clause": Role("parameter", weight=1, within=True),
    "import_specifier": Role("alias name"),
    "import_clause namespace_import": Role(""),
    "method_definition": Role(space="member", weight=_constructor),
    "jsx_attribute": Role("", "attribute"),
}
_SCRIPT_THROUGH = {
    "object_pattern array_pattern rest_pattern": "*",
    "assignment_pattern object_assignment_pattern": "left",
    "pair_pattern": "value",
}
_SCRIPT_SCOPES = _HEADS | kinds(
    "program statement_block switch_body catch_clause for_statement for_in_statement class_body class_static_block "
    "internal_module module jsx_opening_element jsx_self_closing_element"
)
_SCRIPT_NAMES = "identifier property_identifier shorthand_property_identifier_pattern"


def declarations(names: str) -> Declarations:
    """Return the declarations of names that are nodes of some kinds."""
    bodies, owners = kinds("statement_block"), _HEADS | {"catch_clause"}
    return Declarations(names, _SCRIPT_ROLES, _SCRIPT_SCOPES, _SCRIPT_THROUGH, bodies, owners)


JAVASCRIPT = Language(
    "javascript",
    (".js", ".mjs", ".cjs", ".jsx"),
    "tree_sitter_javascript",
    aliases=("js", "javascriptreact"),
    lexicon=replace(_SCRIPT_LEXICON, tags=True),
    rules=tagged(_SCRIPT_PLACES, _SCRIPT_FITS),
    declarations=declarations(_SCRIPT_NAMES),
    definitions=("javascript",),
)


_TYPED_PLACES = f"""{_SCRIPT_PLACES}
(class_body "," @stray)
(return_statement) @return
"""
_TYPED_FITS = _SCRIPT_FITS | {
    "constant": inside(kinds("ambient_declaration export_statement"), _SCRIPT_FUNCTIONS),
    "return": inside(_SCRIPT_FUNCTIONS),
}
_TYPED_DECLARATIONS = declarations(f"{_SCRIPT_NAMES} type_identifier")

TYPESCRIPT = Language(
    "typescript",
    (".ts", ".mts", ".cts"),
    "tree_sitter_typescript",
    "language_typescript",
    aliases=("ts",),
    lexicon=_SCRIPT_LEXICON,
    rules=Rules(_TYPED_PLACES, _TYPED_FITS, _SCRIPT_WORDS, _SCRIPT_QUOTING),
    declarations=_TYPED_DECLARATIONS,
    definitions=("javascript", "typescript"),
)
TSX = Language(
    "tsx",
    (".tsx",),
    "tree_sitter_typescript",
    "language_tsx",
    aliases=("typescriptreact",),
    lexicon=replace(_SCRIPT_LEXICON, tags=True),
    rules=tagged(_TYPED_PLACES, _TYPED_FITS),
    declarations=_TYPED_DECLARATIONS,
    definitions=("javascript", "typescript"),
)
