"""Kotlin."""

from lacuna_model.languages.language import TYPE, Declarations, Language, Lexicon, Role, Rules, kinds, texts

# The grammar has `break`, `continue` and the truth values as names, too.
_WORDS = (
    "as class do else for fun if in interface is object package return super this throw try typealias val var when "
    "while"
)
_QUOTING = kinds("navigation_expression interpolation")  # X::class, "$this"
_SCOPES = kinds(
    "source_file class_body enum_class_body function_declaration lambda_literal anonymous_function block "
    "class_parameters for_statement catch_block when_entry function_type secondary_constructor"
)
_ROLES = {"class_parameter parameter enum_entry": Role(""), "class_declaration object_declaration": TYPE}

KOTLIN = Language(
    "kotlin",
    (".kt", ".kts"),
    "tree_sitter_kotlin",
    aliases=("kt",),
    lexicon=Lexicon(
        quotes=(b'"""', b'"', b"'"),
        declarations=(b"class x {}", b"fun x() {}"),
        heads=texts("fun x() ||class x |when (x) |x |if (x) |x -> |object : x |try |do "),
        tails=((b"do", b" while (x)"), (b"try", b" finally {}")),
        terminator=b"",
    ),
    rules=Rules(reserved=_WORDS, quoting=_QUOTING),
    declarations=Declarations("identifier", _ROLES, _SCOPES),
    definitions=("kotlin",),
)
