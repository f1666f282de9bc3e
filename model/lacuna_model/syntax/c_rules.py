"""Where C and C++ have what their grammars take everywhere."""

from lacuna_model.syntax.fits import (
    CALLED,
    USED,
    Fits,
    attribute,
    destroyed,
    in_directive,
    inside,
    line_start,
    macro,
    never,
    none_of,
    old_style,
    said,
    type_name,
)
from lacuna_model.syntax.rules import ONE_LINE, Rules, kinds

_C_STATEMENTS = kinds(
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
(string_literal) @line
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
_C_BODY = inside(kinds("compound_statement"))
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
    "line": ONE_LINE,
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
_C_QUOTING = kinds(
    "argument_list binary_expression preproc_def preproc_function_def preproc_params preproc_ifdef preproc_defined "
    "preproc_call"
)


C_RULES = (
    Rules("c", _PLAIN_C_PLACES, _C_FITS | {"local": type_name(USED + CALLED)}, _C_WORDS, _C_QUOTING, _C_LASTING),
    Rules("cpp", _CPP_PLACES, _C_FITS | {"class": destroyed}, _CPP_WORDS, _C_QUOTING, _C_LASTING),
)
