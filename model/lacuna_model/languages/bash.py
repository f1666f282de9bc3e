"""Bash."""

from lacuna_model.languages.language import Language, Lexicon

_LEXICON = Lexicon(
    brackets=(b"[]", b"{}"),  # a lone ")" ends the pattern of a case
    line_comment=(b"#",),
    block_comment=(),
    quotes=(b'"', b"'", b"`"),
    statement=b":",
    body=b" :",
    terminator=b"",
    blocks=(
        (b"if", b"fi", b"if x; then"),
        (b"do", b"done", b"while x; do"),
        (b"case", b"esac", b"case x in"),
    ),
)

BASH = Language(
    "bash",
    (".sh", ".bash"),
    "tree_sitter_bash",
    aliases=("shellscript", "sh", "shell"),
    lexicon=_LEXICON,
)
