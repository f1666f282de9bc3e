"""Java and C#."""

from tree_sitter import Node

from lacuna_model.languages.language import CLASH, TYPE, Declarations, Language, Lexicon, Role, Rules, kinds, texts
from lacuna_model.languages.predicates import LOOPS, ONE_LINE, Predicate, jump, never, one_of, text_matches

_JAVA_LEXICON = Lexicon(
    quotes=(b'"""', b'"', b"'"),
    declarations=(b"class x {}",),
    heads=texts("class x ||void x() |switch (x) |enum x |x[] x = |if (x) |try |x = new x() "),
    tails=((b"try", b" finally {}"),),
)
_JAVA_LOOPS = LOOPS | {"enhanced_for_statement"}
_JAVA_BODIES = kinds("class_body lambda_expression")
_JAVA_PLACES = """
(program (_) @top)
(expression_statement (_) @statement)
(program (method_declaration name: (identifier) @main))
(if_statement (local_variable_declaration) @stray)
(_ body: (local_variable_declaration) @stray)
(block (local_variable_declaration (modifiers ["private" "public" "protected" "static"] @stray)))
(string_literal) @line
(break_statement) @break
(continue_statement) @continue
"""
_EXPRESSIONS = one_of(
    "assignment_expression update_expression method_invocation object_creation_expression switch_expression"
)


def _is_statement(expression: Node) -> bool:
    """Whether an expression may be a statement, or is the value of an arrow in a switch."""
    statement = expression.parent
    in_rule = statement is not None and statement.parent is not None and statement.parent.type == "switch_rule"
    return in_rule or _EXPRESSIONS(expression)


_JAVA_FITS: dict[str, Predicate] = {
    "stray": never,
    "top": one_of(
        "package_declaration import_declaration module_declaration class_declaration interface_declaration "
        "enum_declaration record_declaration annotation_type_declaration method_declaration"
    ),
    "main": text_matches(rb"main"),  # others are tolerated where the file has more of them outside of classes
    "statement": _is_statement,
    "line": lambda node: (node.text or b"").startswith(b'"""') or ONE_LINE(node),
    "break": jump(_JAVA_LOOPS | {"switch_expression"}, _JAVA_BODIES),
    "continue": jump(_JAVA_LOOPS, _JAVA_BODIES),
}
_JAVA_WORDS = (
    "abstract assert boolean break byte case catch char class const continue default do double else enum extends "
    "false final finally float for goto if implements import instanceof int interface long native new null package "
    "private protected public return short static super switch synchronized this throw throws transient true try "
    "void volatile while"
)
_JAVA_WALLS = kinds(
    "method_declaration constructor_declaration compact_constructor_declaration static_initializer class_body "
    "interface_body enum_body enum_body_declarations record_declaration annotation_type_body program"
)
_JAVA_ROLES = {
    "variable_declarator formal_parameter catch_formal_parameter resource enum_constant": Role(),
    "enhanced_for_statement": Role(within=True),
    "lambda_expression": Role("parameters", within=True),
    "inferred_parameters": Role("*"),
    "switch_label": Role("*", "case"),
    "method_declaration constructor_declaration": Role(space="method", signature="parameters"),
    "class_declaration interface_declaration enum_declaration record_declaration": TYPE,
}
_JAVA_SCOPES = _JAVA_WALLS | kinds(
    "block constructor_body for_statement enhanced_for_statement lambda_expression switch_block catch_clause "
    "try_with_resources_statement switch_rule"
)

JAVA = Language(
    "java",
    (".java",),
    "tree_sitter_java",
    lexicon=_JAVA_LEXICON,
    rules=Rules(_JAVA_PLACES, _JAVA_FITS, _JAVA_WORDS),
    declarations=Declarations(
        "identifier decimal_integer_literal character_literal string_literal",
        _JAVA_ROLES,
        _JAVA_SCOPES,
        walls=_JAVA_WALLS,
        members=kinds("class_body interface_body enum_body enum_body_declarations annotation_type_body"),
        ordered=True,
    ),
    definitions=("java",),
)


def _unless_partial(holder: Node, _child: Node) -> int:
    """0 for a type or method that is ``partial`` and may have several parts. A static constructor never clashes."""
    words = {one.text for one in holder.children}
    if holder.type == "constructor_declaration" and b"static" in words:
        return -CLASH
    return 0 if b"partial" in words else CLASH


_CSHARP_WALLS = kinds(
    "method_declaration constructor_declaration local_function_statement lambda_expression declaration_list "
    "anonymous_method_expression accessor_declaration operator_declaration compilation_unit "
    "enum_member_declaration_list delegate_declaration class_declaration record_declaration struct_declaration "
    "conversion_operator_declaration indexer_declaration destructor_declaration property_declaration "
    "preproc_if preproc_elif preproc_else"
)
_CSHARP_SIGNATURE = "explicit_interface_specifier parameters type_parameters type_parameter_list"
_CSHARP_ROLES = {
    "variable_declarator parameter catch_declaration declaration_expression enum_member_declaration": Role(),
    "property_declaration": Role(signature="explicit_interface_specifier"),
    "foreach_statement": Role("left", within=True),
    "method_declaration constructor_declaration": Role(
        space="method", signature=_CSHARP_SIGNATURE, weight=_unless_partial
    ),
    "class_declaration struct_declaration interface_declaration record_declaration enum_declaration": Role(
        space="type", weight=_unless_partial, signature="type_parameter_list"
    ),
}
_CSHARP_SCOPES = _CSHARP_WALLS | kinds(
    "block for_statement foreach_statement while_statement using_statement fixed_statement switch_body "
    "switch_expression_arm catch_clause"
)

CSHARP = Language(
    "csharp",
    (".cs",),
    "tree_sitter_c_sharp",
    aliases=("c#", "c_sharp", "cs"),
    lexicon=_JAVA_LEXICON,
    declarations=Declarations(
        "identifier", _CSHARP_ROLES, _CSHARP_SCOPES, walls=_CSHARP_WALLS, members=kinds("declaration_list")
    ),
    definitions=("csharp",),
)
