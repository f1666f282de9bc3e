"""Where JavaScript and TypeScript have what their grammars take everywhere."""

from lacuna_model.syntax.fits import (
    Fits,
    awaited,
    heir,
    in_constructor,
    in_line,
    inside,
    jump,
    line_start,
    matched,
    never,
    one_of,
    said,
    statement_start,
    target,
)
from lacuna_model.syntax.regular import well_formed
from lacuna_model.syntax.rules import LOOPS, ONE_LINE, Rules, kinds

_SCRIPT_LOOPS = LOOPS | {"for_in_statement"}
_OWN_THIS = kinds("function_declaration function_expression generator_function generator_function_declaration")
_SCRIPT_FUNCTIONS = _OWN_THIS | {"arrow_function", "method_definition", "class_static_block"}
_SCRIPT_PLACES = """
(break_statement) @break
(continue_statement) @continue
(super) @super
(call_expression function: (super) @construction)
(binary_expression right: [(assignment_expression) (augmented_assignment_expression) (arrow_function)] @stray)
(unary_expression argument: [(assignment_expression) (augmented_assignment_expression) (arrow_function)] @stray)
(try_statement !handler !finalizer) @stray
(update_expression argument: (_) @target)
(assignment_expression left: (parenthesized_expression (_) @target))
(augmented_assignment_expression left: (parenthesized_expression (_) @target))
(formal_parameters (_) @parameter)
(regex_pattern) @regex
(expression_statement (_) @statement)
(arrow_function "=>" @arrow)
(arrow_function body: (object) @stray)
(object ["{" ","] . "," @stray)
(object (method_definition "static" @stray))
(object_pattern ["{" ","] . "," @stray)
(arguments ["(" ","] . "," @stray)
(html_comment) @closing_mark
(labeled_statement body: [(lexical_declaration) (class_declaration) (import_statement) (export_statement)] @stray)
(statement_block [(import_statement) (export_statement)] @module)
(lexical_declaration kind: "const" (variable_declarator !value) @constant)
[(class_declaration) (class)] @class
(await_expression) @awaited
(string) @line
(regex_flags) @flags
(switch_body (switch_default) (switch_default) @stray)
"""
_SCRIPT_FITS: dict[str, Fits] = {
    "stray": never,
    "statement": statement_start,
    "arrow": in_line,
    "module": inside(kinds("module internal_module")),
    "break": jump(_SCRIPT_LOOPS | {"switch_statement"}, _SCRIPT_FUNCTIONS),
    "continue": jump(_SCRIPT_LOOPS, _SCRIPT_FUNCTIONS),
    "super": inside(kinds("method_definition field_definition public_field_definition class_static_block"), _OWN_THIS),
    "construction": in_constructor,
    "constant": never,
    "class": heir,
    "awaited": awaited,
    "line": lambda node: ONE_LINE(node) or (node.parent is not None and node.parent.type == "jsx_attribute"),
    "spread": one_of("spread_element"),
    "generic": said(rb"(?s).*(?:,|\bextends\b).*"),
    "target": target,
    "closing_mark": lambda node: (node.text or b"").startswith(b"<!--") or line_start(node),
    "regex": well_formed,
    "parameter": one_of(
        "identifier object_pattern array_pattern assignment_pattern rest_pattern undefined this "
        "required_parameter optional_parameter decorator"
    ),
    "element": matched,
    "flags": said(rb"(?:([dgimsuvy])(?!.*\1))*"),
}
_MARKUP_PLACES = """
(jsx_element) @element
(jsx_opening_element attribute: (jsx_expression (_) @spread))
(jsx_self_closing_element attribute: (jsx_expression (_) @spread))
"""
_TYPED_PLACES = f"""{_SCRIPT_PLACES}
(labeled_statement body: [(type_alias_declaration) (interface_declaration) (enum_declaration)] @stray)
(class_body "," @stray)
(if_statement consequence: (empty_statement) @stray)
(object (method_definition "?" @stray))
(required_parameter pattern: (_) @parameter)
(optional_parameter pattern: (_) @parameter)
(formal_parameters (optional_parameter) . (required_parameter pattern: (identifier) !value) @stray)
(return_statement) @return
"""
_TYPED_FITS = _SCRIPT_FITS | {
    "constant": inside(kinds("ambient_declaration export_statement"), _SCRIPT_FUNCTIONS),
    "return": inside(_SCRIPT_FUNCTIONS),
}
_SCRIPT_WORDS = (
    "break case catch class const continue debugger default delete do else enum export extends false finally for "
    "function if import in instanceof let new null return super switch this throw true try typeof var void while with"
)
_SCRIPT_QUOTING = kinds("export_specifier import_specifier namespace_export")


def _tagged(language: str, places: str, fits: dict[str, Fits]) -> Rules:
    firm, blamed = frozenset({"element", "spread", "generic"}), {"element": -1}
    return Rules(language, places + _MARKUP_PLACES, fits, _SCRIPT_WORDS, _SCRIPT_QUOTING, firm=firm, blamed=blamed)


SCRIPT_RULES = (
    _tagged("javascript", _SCRIPT_PLACES, _SCRIPT_FITS),
    Rules("typescript", _TYPED_PLACES, _TYPED_FITS, _SCRIPT_WORDS, _SCRIPT_QUOTING),
    _tagged("tsx", f"{_TYPED_PLACES}(arrow_function type_parameters: (_) @generic)", _TYPED_FITS),
)
