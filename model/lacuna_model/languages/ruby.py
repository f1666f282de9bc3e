"""Ruby."""

from lacuna_model.languages.language import Declarations, Language, Lexicon, Role, kinds

_RUBY_WORDS = (b"def", b"class", b"module", b"if", b"unless", b"while", b"until", b"case", b"begin", b"do", b"for")
_LEXICON = Lexicon(
    line_comment=(b"#",),
    block_comment=(),
    quotes=(b'"', b"'", b"`"),
    body=b"",
    terminator=b"",
    blocks=tuple((word, b"end", b"if x") for word in _RUBY_WORDS),
)
_RUBY_ROLES = {
    "method_parameters": Role("*"),
    "block_parameters": Role("*"),
    "lambda_parameters": Role("*"),
    **dict.fromkeys(
        kinds("optional_parameter keyword_parameter splat_parameter hash_splat_parameter block_parameter"), Role()
    ),
}
_RUBY_SCOPES = kinds("program method singleton_method block do_block lambda")

RUBY = Language(
    "ruby",
    (".rb", ".rake"),
    "tree_sitter_ruby",
    aliases=("rb",),
    lexicon=_LEXICON,
    declarations=Declarations("identifier", _RUBY_ROLES, _RUBY_SCOPES, {"destructured_parameter": "*"}),
    definitions=("ruby",),
)
