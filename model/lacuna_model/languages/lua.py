"""Lua."""

from lacuna_model.languages.language import Declarations, Language, Lexicon, Role, kinds

_LEXICON = Lexicon(
    line_comment=(b"--",),
    block_comment=((b"--[[", b"]]"),),
    operand=b"x",
    body=b"",
    links=(b" then", b" do"),
    terminator=b"",
    blocks=(
        (b"function", b"end", b"function x()"),
        (b"if", b"end", b"if x then"),
        (b"do", b"end", b"do"),
    ),
)

LUA = Language(
    "lua",
    (".lua",),
    "tree_sitter_lua",
    lexicon=_LEXICON,
    declarations=Declarations(
        "identifier",
        {"label_statement": Role("")},
        kinds("chunk block function_declaration function_definition"),
    ),
    definitions=("lua",),
)
