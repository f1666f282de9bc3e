"""Where languages have what their tree-sitter grammars take everywhere: queries for places, and who may stand there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tree_sitter import Query

from lacuna_model.syntax.fits import (
    CALLED,
    USED,
    Fits,
    apart,
    attribute,
    awaited,
    behind,
    declared_once,
    destroyed,
    distinct,
    evenly_named,
    heir,
    in_constructor,
    in_directive,
    in_line,
    inside,
    jump,
    line_start,
    macro,
    never,
    none_of,
    of_its_name,
    old_style,
    one_of,
    outside,
    said,
    statement_start,
    target,
    type_name,
)
from lacuna_model.syntax.languages import language_for
from lacuna_model.syntax.regular import well_formed


@dataclass(frozen=True)
class Rules:
    """One language's rules.

    ``places`` is a query; ``fits`` says by the name of a capture whether a captured node may stand there. What is
    captured by one of the names ``lasting`` may be due to a macro. ``reserved`` are words that are no names, unless
    their parent is one of ``quoting``. ``line_ends`` says that these may be semicolons.
    """

    language: str
    places: str
    fits: Mapping[str, Fits] = field(default_factory=dict)
    reserved: str = ""
    quoting: frozenset[str] = frozenset()
    lasting: frozenset[str] = frozenset()
    line_ends: bool = False

    @cached_property
    def query(self) -> Query:
        """The compiled query."""
        language = language_for(name=self.language)
        assert language is not None
        return Query(language.grammar(), self.places)

    @cached_property
    def words(self) -> re.Pattern[bytes]:
        """What finds a reserved word."""
        return re.compile(rb"\b(?:%b)\b" % b"|".join(self.reserved.encode().split()))


def _kinds(names: str) -> frozenset[str]:
    return frozenset(names.split())


_C_STATEMENTS = _kinds(
    "if_statement for_statement while_statement do_statement switch_statement return_statement break_statement "
    "continue_statement goto_statement labeled_statement case_statement compound_statement "
    "throw_statement try_statement for_range_loop co_return_statement co_yield_statement"
)
# At the top level, in a namespace, in the block of extern "C", between the lines of a condition.
_C_PLACES = """
(translation_unit (_) @top)
(declaration_list (_) @top)
(preproc_if (_) @between)
(preproc_ifdef (_) @between)
(preproc_else (_) @between)
(translation_unit (expression_statement (_) @macro))
(declaration_list (expression_statement (_) @macro))
[
  (preproc_if (expression_statement (_) @macro_between))
  (preproc_ifdef (expression_statement (_) @macro_between))
  (preproc_else (expression_statement (_) @macro_between))
]
(function_definition (declaration) @old)
(function_definition type: [(type_identifier) (primitive_type)] @type declarator: [(identifier) (field_identifier)])
(function_definition type: (_ !body name: (_) @attributed) declarator: [(identifier) (field_identifier)])
(sized_type_specifier type: (type_identifier) @sized)
(field_declaration type: (type_identifier) @nameless !declarator)
[
  (preproc_def (_) @in_line)
  (preproc_function_def (_) @in_line)
  (preproc_include (_) @in_line)
  (preproc_ifdef name: (_) @in_line)
]
(preproc_call directive: (preproc_directive) @directive)
["#include" "#define" "#if" "#ifdef" "#ifndef" "#elif" "#else" "#endif" (preproc_directive)] @directive_line
(compound_statement (declaration type: (type_identifier) @local declarator: [
  (identifier) (init_declarator declarator: (identifier)) (function_declarator declarator: (identifier))]))
(concatenated_string (identifier) @literal)
(call_expression function: (field_expression) arguments: (argument_list (identifier) @value))
(function_declarator parameters: (_) (identifier) @attribute)
(function_declarator parameters: (_) (call_expression function: (identifier) @attribute))
(compound_statement (function_definition !type declarator: (function_declarator declarator: (identifier) @loop)))
(compound_statement (function_definition type: (type_identifier) @loop declarator: (parenthesized_declarator)))
"""
_PLAIN_C_PLACES = f"""{_C_PLACES}
(compound_statement (function_definition type: (_) declarator: (function_declarator)) @stray)
(parameter_list (variadic_parameter) . "," @stray)
(function_definition declarator: (function_declarator parameters: (parameter_list
  (parameter_declaration type: (type_identifier) @omitted !declarator))))
"""
_CPP_PLACES = f"""{_C_PLACES}
(template_declaration (declaration "," @stray))
(parameter_list "..." . "," @stray)
[(class_specifier) (struct_specifier)] @class
"""
_C_BODY = inside(_kinds("compound_statement"))
_C_ELSEWHERE = none_of(_C_STATEMENTS)
_C_WORDS = (
    "auto break case char const continue do double else enum extern float for goto if int long register return short "
    "signed sizeof static struct switch typedef union unsigned void volatile while"
)
_C_FITS: dict[str, Fits] = {
    "stray": never,
    "top": _C_ELSEWHERE,
    "between": lambda node: _C_ELSEWHERE(node) or _C_BODY(node),
    "macro": macro,
    "old": old_style,
    "macro_between": lambda node: macro(node) or _C_BODY(node),
    "local": type_name(),
    "literal": said(rb"[A-Z_]\w*"),
    "value": said(rb"(?!(?:%b)\Z)\w+" % b"|".join(_C_WORDS.encode().split())),
    "attribute": attribute,
    "loop": said(rb"[A-Z_]\w*|(?i:.*(?:for|each|loop|while).*)"),
    "attributed": said(rb"[A-Z_][A-Z0-9_]*|(?i:.*(?:export|api|decl|public).*)"),
    "sized": said(rb"[A-Z_]\w*"),
    "nameless": said(rb"[A-Z_]\w*"),
    "omitted": said(rb"[A-Z_]\w*"),
    "in_line": in_directive,
    "type": said(rb"class|namespace"),  # of C++ in a header that is read as C
    "directive_line": line_start,
    "directive": said(
        rb"#[ \t]*(?:include|define|undef|error|warning|pragma|line|ident|sccs|assert|unassert|include_next|import"
        rb"|embed|using)?"
    ),
}
_C_LASTING = frozenset({"top", "between", "macro", "type"})
_CPP_WORDS = (
    f"{_C_WORDS} bool catch class decltype delete explicit false friend inline mutable namespace new private "
    "protected public template this throw true try typename using virtual"
)
_C_QUOTING = _kinds(
    "argument_list binary_expression preproc_def preproc_function_def preproc_params preproc_ifdef preproc_defined "
    "preproc_call"
)

# A line's end between a string's quotes is no blank, as the grammars have it.
_ONE_LINE = said(rb"(?s)(?:[^\n\\]|\\\r?.)*")

_LOOPS = _kinds("for_statement while_statement do_statement")
_SCRIPT_LOOPS = _LOOPS | {"for_in_statement"}
_OWN_THIS = _kinds("function_declaration function_expression generator_function generator_function_declaration")
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
[(program) (statement_block) (switch_body)] @scope
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
"""
_SCRIPT_FITS: dict[str, Fits] = {
    "stray": never,
    "statement": statement_start,
    "arrow": in_line,
    "module": inside(_kinds("module internal_module")),
    "break": jump(_SCRIPT_LOOPS | {"switch_statement"}, _SCRIPT_FUNCTIONS),
    "continue": jump(_SCRIPT_LOOPS, _SCRIPT_FUNCTIONS),
    "super": inside(_kinds("method_definition field_definition public_field_definition class_static_block"), _OWN_THIS),
    "construction": in_constructor,
    "constant": never,
    "class": heir,
    "awaited": awaited,
    "line": _ONE_LINE,
    "target": target,
    "closing_mark": lambda node: (node.text or b"").startswith(b"<!--") or line_start(node),
    "regex": well_formed,
    "parameter": one_of(
        "identifier object_pattern array_pattern assignment_pattern rest_pattern undefined this "
        "required_parameter optional_parameter decorator"
    ),
    "scope": declared_once,
    "flags": said(rb"(?:([dgimsuvy])(?!.*\1))*"),
}
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
    "constant": inside(_kinds("ambient_declaration export_statement"), _SCRIPT_FUNCTIONS),
    "return": inside(_SCRIPT_FUNCTIONS),
}
_SCRIPT_WORDS = (
    "break case catch class const continue debugger default delete do else enum export extends false finally for "
    "function if import in instanceof let new null return super switch this throw true try typeof var void while with"
)
_SCRIPT_QUOTING = _kinds("export_specifier import_specifier namespace_export")

_JAVA_LOOPS = _LOOPS | {"enhanced_for_statement"}
_JAVA_BODIES = _kinds("class_body lambda_expression")
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
    "line": lambda node: (node.text or b"").startswith(b'"""') or _ONE_LINE(node),
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
        _kinds("loop_expression while_expression for_expression"),
        _kinds("function_item closure_expression async_block"),
    ),
}
_RUST_WORDS = (
    "as break const continue else enum extern false fn for if impl in let loop match mod move mut pub ref return "
    "static struct trait true type unsafe use where while async await dyn"
)
_RUST_QUOTING = _kinds("token_tree lifetime label")

_GO_LOOPS = _kinds("for_statement")
_GO_SWITCHES = _kinds("expression_switch_statement type_switch_statement select_statement")
_GO_HEADERS = _GO_LOOPS | _GO_SWITCHES | {"if_statement"}
_GO_BRACKETS = _kinds(
    "block expression_case type_case communication_case default_case parenthesized_expression argument_list "
    "literal_value index_expression slice_expression func_literal"
)
_GO_FUNCTIONS = _kinds("function_declaration method_declaration func_literal")
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
    "line": _ONE_LINE,
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
    Rules("c", _PLAIN_C_PLACES, _C_FITS | {"local": type_name(USED + CALLED)}, _C_WORDS, _C_QUOTING, _C_LASTING),
    Rules("cpp", _CPP_PLACES, _C_FITS | {"class": destroyed}, _CPP_WORDS, _C_QUOTING, _C_LASTING),
    Rules("javascript", _SCRIPT_PLACES, _SCRIPT_FITS, _SCRIPT_WORDS, _SCRIPT_QUOTING),
    Rules("typescript", _TYPED_PLACES, _TYPED_FITS, _SCRIPT_WORDS, _SCRIPT_QUOTING),
    Rules("tsx", _TYPED_PLACES, _TYPED_FITS, _SCRIPT_WORDS, _SCRIPT_QUOTING),
    Rules("java", _JAVA_PLACES, _JAVA_FITS, _JAVA_WORDS),
    Rules("rust", _RUST_PLACES, _RUST_FITS, _RUST_WORDS, _RUST_QUOTING),
    Rules("go", _GO_PLACES, _GO_FITS, _GO_WORDS, line_ends=True),
)
RULES = {rules.language: rules for rules in _TABLE}
