"""Where languages have what their tree-sitter grammars take everywhere: queries for places, and who may stand there."""

from dataclasses import replace

from lacuna_model.syntax.c_rules import C_RULES
from lacuna_model.syntax.data_rules import DATA_RULES
from lacuna_model.syntax.fits import (
    Fits,
    apart,
    behind,
    distinct,
    evenly_named,
    jump,
    never,
    of_its_name,
    one_of,
    outside,
    said,
)
from lacuna_model.syntax.once_rules import ONCE
from lacuna_model.syntax.rules import LOOPS, ONE_LINE, Rules, kinds
from lacuna_model.syntax.script_rules import SCRIPT_RULES

_JAVA_LOOPS = LOOPS | {"enhanced_for_statement"}
_JAVA_BODIES = kinds("class_body lambda_expression")
_JAVA_PLACES = """
(program (_) @top)
(expression_statement (_) @statement)
(program (method_declaration name: (identifier) @main))
(modifiers) @modifiers
(if_statement consequence: (local_variable_declaration) @stray)
(if_statement alternative: (local_variable_declaration) @stray)
(while_statement body: (local_variable_declaration) @stray)
(for_statement body: (local_variable_declaration) @stray)
(enhanced_for_statement body: (local_variable_declaration) @stray)
(block (local_variable_declaration (modifiers ["private" "public" "protected" "static"] @stray)))
[(class_declaration) (enum_declaration) (record_declaration)] @class
(string_literal) @line
(escape_sequence) @escape
(class_declaration body: (class_body (compact_constructor_declaration) @stray))
(break_statement) @break
(continue_statement) @continue
"""
_JAVA_FITS: dict[str, Fits] = {
    "stray": never,
    "top": one_of(
        "package_declaration import_declaration module_declaration class_declaration interface_declaration "
        "enum_declaration record_declaration annotation_type_declaration method_declaration"
    ),
    "main": said(rb"main"),  # what else a class without a head has is no fault where the text has more of it
    "modifiers": distinct,
    "statement": one_of(
        "assignment_expression update_expression method_invocation object_creation_expression switch_expression"
    ),
    "class": of_its_name,
    "line": lambda node: (node.text or b"").startswith(b'"""') or ONE_LINE(node),
    "escape": said(rb"\\(?:[btnfrs\"'\\\r\n]|[0-7]{1,3}|u+[0-9a-fA-F]{4})"),
    "break": jump(_JAVA_LOOPS | {"switch_expression"}, _JAVA_BODIES),
    "continue": jump(_JAVA_LOOPS, _JAVA_BODIES),
}
_JAVA_WORDS = (
    "abstract assert boolean break byte case catch char class const continue default do double else enum extends "
    "false final finally float for goto if implements import instanceof int interface long native new null package "
    "private protected public return short static super switch synchronized this throw throws transient true try "
    "void volatile while"
)

_RUST_PLACES = """
(source_file (expression_statement (_) @item))
(source_file [(let_declaration) (function_signature_item)] @stray)
(source_file (function_item parameters: (parameters (self_parameter) @stray)))
(block [(function_signature_item) (function_item parameters: (parameters (self_parameter)))] @stray)
(impl_item body: (declaration_list (function_signature_item) @stray))
(function_item parameters: (parameters (_) @parameter))
(impl_item body: (declaration_list (_) @member))
(trait_item body: (declaration_list (_) @member))
(binary_expression
  left: (binary_expression operator: ["<" ">" "<=" ">=" "==" "!="])
  operator: ["<" ">" "<=" ">=" "==" "!="] @stray)
(break_expression) @jump
(continue_expression) @jump
(escape_sequence) @escape
"""
_RUST_FITS: dict[str, Fits] = {
    "stray": never,
    "item": one_of("macro_invocation"),
    "parameter": one_of("parameter self_parameter variadic_parameter attribute_item"),
    "member": one_of(
        "function_item function_signature_item const_item type_item associated_type macro_invocation attribute_item "
        "inner_attribute_item empty_statement"
    ),
    "escape": said(rb"\\(?:[nrt0\\\"'\r\n]|x[0-9a-fA-F]{2}|u\{[0-9a-fA-F_]{1,8}\})"),
    "jump": jump(
        kinds("loop_expression while_expression for_expression"),
        kinds("function_item closure_expression async_block"),
    ),
}
_RUST_WORDS = (
    "as break const continue else enum extern false fn for if impl in let loop match mod move mut pub ref return "
    "static struct trait true type unsafe use where while async await dyn"
)
_RUST_QUOTING = kinds("token_tree lifetime label")

_GO_LOOPS = kinds("for_statement")
_GO_SWITCHES = kinds("expression_switch_statement type_switch_statement select_statement")
_GO_HEADERS = _GO_LOOPS | _GO_SWITCHES | {"if_statement"}
_GO_BRACKETS = kinds(
    "block expression_case type_case communication_case default_case parenthesized_expression argument_list "
    "literal_value index_expression slice_expression func_literal"
)
_GO_FUNCTIONS = kinds("function_declaration method_declaration func_literal")
_GO_PLACES = """
(source_file (_) @top)
(source_file (_) @apart)
(source_file (import_declaration) @import)
(import_spec path: (_) @path)
(parameter_list) @parameters
(defer_statement (_) @called)
(go_statement (_) @called)
(composite_literal type: [(type_identifier) (qualified_type) (generic_type)]) @literal
(break_statement) @break
(continue_statement) @continue
(short_var_declaration left: (expression_list (_) @name))
(range_clause left: (expression_list (_) @name) ":=")
(interpreted_string_literal) @line
(escape_sequence) @escape
"""
_GO_FITS: dict[str, Fits] = {
    "top": one_of(
        "package_clause import_declaration function_declaration method_declaration type_declaration var_declaration "
        "const_declaration"
    ),
    "apart": apart,
    "import": behind("package_clause import_declaration"),
    "path": said(rb"[\"`][^\x00-\x20!\"#$%&'()*,:;<=>?\[\\\]^`{|}]+[\"`]"),
    "parameters": evenly_named,
    "name": one_of("identifier"),
    "line": ONE_LINE,
    "escape": said(rb"\\(?:[abfnrtv\\\"']|[0-7]{3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"),
    "literal": outside(_GO_HEADERS, _GO_BRACKETS),  # its brace would be read as that of the block
    "called": one_of("call_expression type_conversion_expression"),
    "break": jump(_GO_LOOPS | _GO_SWITCHES, _GO_FUNCTIONS),
    "continue": jump(_GO_LOOPS, _GO_FUNCTIONS),
}
_GO_WORDS = (
    "break case chan const continue default defer else fallthrough for func go goto if import interface map package "
    "range return select struct switch type var"
)

_TABLE = (
    *C_RULES,
    *SCRIPT_RULES,
    *DATA_RULES,
    Rules("java", _JAVA_PLACES, _JAVA_FITS, _JAVA_WORDS),
    Rules("rust", _RUST_PLACES, _RUST_FITS, _RUST_WORDS, _RUST_QUOTING),
    Rules("go", _GO_PLACES, _GO_FITS, _GO_WORDS, line_ends=True),
)
_OWN = {rules.language: rules for rules in _TABLE}
RULES = {name: replace(_OWN.get(name, Rules(name)), once=ONCE.get(name)) for name in (*_OWN, *ONCE)}
