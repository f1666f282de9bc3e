"""Languages whose blocks are delimited by words: Bash, Lua and Ruby."""

from lacuna_model.languages.language import Declarations, Language, Lexicon, Role, kinds

BASH = Language(
    "bash",
    (".sh", ".bash"),
    "tree_sitter_bash",
    aliases=("shellscript", "sh", "shell"),
    lexicon=Lexicon(
        brackets=(b"[]", b"{}"),  # a lone ")" ends the pattern of a case
        line_comment=(b"#",),
        block_comment=(),
        quotes=(b'"', b"'", b"`"),
        atoms=(rb"\$#", rb"\$\{[^{}\"'`\n]*\}"),
        statement=b":",
        body=b" :",
        terminator=b"",
        blocks=((b"if", b"fi", b"if x; then"), (b"do", b"done", b"while x; do"), (b"case", b"esac", b"case x in")),
    ),
)


LUA = Language(
    "lua",
    (".lua",),
    "tree_sitter_lua",
    lexicon=Lexicon(
        line_comment=(b"--",),
        block_comment=((b"--[[", b"]]"),),
        raw=((b"[[", b"]]"),),
        operand=b"x",
        body=b"",
        links=(b" then", b" do"),
        terminator=b"",
        blocks=((b"function", b"end", b"function x()"), (b"if", b"end", b"if x then"), (b"do", b"end", b"do")),
    ),
    declarations=Declarations(
        "identifier", {"label_statement": Role("")}, kinds("chunk block function_declaration function_definition")
    ),
    definitions=("lua",),
)


_RUBY_WORDS = (b"def", b"class", b"module", b"if", b"unless", b"while", b"until", b"case", b"begin", b"do", b"for")
_RUBY_ROLES = {
    "method_parameters block_parameters lambda_parameters": Role("*"),
    "optional_parameter keyword_parameter splat_parameter hash_splat_parameter block_parameter": Role(),
}
_RUBY_SCOPES = kinds("program method singleton_method block do_block lambda")

RUBY = Language(
    "ruby",
    (".rb", ".rake"),
    "tree_sitter_ruby",
    aliases=("rb",),
    lexicon=Lexicon(
        line_comment=(b"#",),
        block_comment=(),
        quotes=(b'"', b"'", b"`"),
        body=b"",
        terminator=b"",
        blocks=tuple((word, b"end", b"if x") for word in _RUBY_WORDS),
    ),
    declarations=Declarations("identifier", _RUBY_ROLES, _RUBY_SCOPES),
    definitions=("ruby",),
)
