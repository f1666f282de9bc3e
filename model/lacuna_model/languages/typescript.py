"""TypeScript, without and with JSX elements."""

from dataclasses import replace

from lacuna_model.languages.javascript import (
    SCRIPT_FITS,
    SCRIPT_FUNCTIONS,
    SCRIPT_LEXICON,
    SCRIPT_NAMES,
    SCRIPT_PLACES,
    SCRIPT_QUOTING,
    SCRIPT_WORDS,
    declarations,
    tagged,
)
from lacuna_model.languages.language import Language, Rules, kinds
from lacuna_model.languages.predicates import inside

_TYPED_PLACES = f"""{SCRIPT_PLACES}
(labeled_statement body: [(type_alias_declaration) (interface_declaration) (enum_declaration)] @stray)
(class_body "," @stray)
(if_statement consequence: (empty_statement) @stray)
(object (method_definition "?" @stray))
(required_parameter pattern: (_) @parameter)
(optional_parameter pattern: (_) @parameter)
(formal_parameters (optional_parameter) . (required_parameter pattern: (identifier) !value) @stray)
(return_statement) @return
"""
_TYPED_FITS = SCRIPT_FITS | {
    "constant": inside(kinds("ambient_declaration export_statement"), SCRIPT_FUNCTIONS),
    "return": inside(SCRIPT_FUNCTIONS),
}
_DECLARATIONS = declarations(f"{SCRIPT_NAMES} type_identifier")

TYPESCRIPT = Language(
    "typescript",
    (".ts", ".mts", ".cts"),
    "tree_sitter_typescript",
    "language_typescript",
    aliases=("ts",),
    lexicon=SCRIPT_LEXICON,
    rules=Rules(_TYPED_PLACES, _TYPED_FITS, SCRIPT_WORDS, SCRIPT_QUOTING),
    declarations=_DECLARATIONS,
    definitions=(
        "javascript",
        "typescript",
    ),
)
TSX = Language(
    "tsx",
    (".tsx",),
    "tree_sitter_typescript",
    "language_tsx",
    aliases=("typescriptreact",),
    lexicon=replace(SCRIPT_LEXICON, tags=True),
    rules=tagged(f"{_TYPED_PLACES}(arrow_function type_parameters: (_) @generic)", _TYPED_FITS),
    declarations=_DECLARATIONS,
    definitions=(
        "javascript",
        "typescript",
    ),
)
