"""CSS."""

from lacuna_model.languages.language import Language, Lexicon

_LEXICON = Lexicon(heads=(b"x ", b"@media x "), line_comment=(), operand=b"x", statement=b"x:x;")

CSS = Language("css", (".css",), "tree_sitter_css", lexicon=_LEXICON)
