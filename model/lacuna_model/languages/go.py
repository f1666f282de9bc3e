"""Go."""

from tree_sitter import Node

from lacuna_model.languages.language import CLASH, KEY, Declarations, Language, Lexicon, Role, Rules, kinds, texts
from lacuna_model.languages.predicates import Predicate, inside, jump, one_of

_GO_LOOPS = kinds("for_statement")
_GO_SWITCHES = kinds("expression_switch_statement type_switch_statement select_statement")
_GO_HEADERS = _GO_LOOPS | _GO_SWITCHES | {"if_statement"}
_GO_BRACKETS = kinds(
    "block expression_case type_case communication_case default_case parenthesized_expression argument_list "
    "literal_value index_expression slice_expression func_literal"
)
_in_header = inside(_GO_HEADERS, _GO_BRACKETS)
_GO_FUNCTIONS = kinds("function_declaration method_declaration func_literal")
_GO_PLACES = """
(source_file (_) @top)
(composite_literal type: [(type_identifier) (qualified_type) (generic_type)]) @literal
(break_statement) @break
(continue_statement) @continue
"""
_GO_FITS: dict[str, Predicate] = {
    "top": one_of(
        "package_clause import_declaration function_declaration method_declaration type_declaration var_declaration "
        "const_declaration"
    ),
    "literal": lambda node: not _in_header(node),  # its brace would be read as the block's
    "break": jump(_GO_LOOPS | _GO_SWITCHES, _GO_FUNCTIONS),
    "continue": jump(_GO_LOOPS, _GO_FUNCTIONS),
}


def _renews(variables: Node, _child: Node) -> bool:
    """Whether ``:=`` declares a name that nothing above it in its block does: then it may repeat others."""
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
    """The names that ``:=`` or ``var`` declares."""
    left = statement.child_by_field_name("left")
    if statement.type == "short_var_declaration" and left is not None:
        return left.named_children
    if statement.type not in ("var_declaration", "var_spec_list"):
        return statement.children_by_field_name("name") if statement.type == "var_spec" else []
    return [name for inner in statement.named_children for name in _go_names(inner)]


def _go_function(function: Node, name: Node) -> int:
    return 0 if name.text == b"init" else CLASH


_GO_ROLES = {
    "var_spec const_spec parameter_declaration variadic_parameter_declaration type_spec type_alias": Role(),
    "short_var_declaration": Role("left", renews=_renews),
    "function_declaration": Role(weight=_go_function),
    "method_declaration": Role(space="method", signature="receiver"),
    "field_declaration": Role(space="member"),
    "keyed_element": KEY,
    "expression_case": Role("value", "case"),
}
_GO_SCOPES = _GO_FUNCTIONS | kinds(
    "source_file block for_statement if_statement expression_switch_statement type_switch_statement select_statement "
    "expression_case type_case default_case communication_case field_declaration_list literal_value function_type "
    "method_elem method_spec"
)

GO = Language(
    "go",
    (".go",),
    "tree_sitter_go",
    aliases=("golang",),
    lexicon=Lexicon(
        quotes=(b'"', b"'", b"`"),
        heads=texts("func x() ||type x struct |switch |x = x|if x |for |x: struct "),
        tails=((b"defer", b"()"), (b"go", b"()")),
        terminator=b"",
    ),
    rules=Rules(_GO_PLACES, _GO_FITS, line_ends=True),
    declarations=Declarations(
        "identifier field_identifier type_identifier int_literal interpreted_string_literal rune_literal",
        _GO_ROLES,
        _GO_SCOPES,
        {"expression_list": "*", "literal_element": "*"},
        kinds("block"),
        _GO_FUNCTIONS,
    ),
    definitions=("go",),
)
