"""Python."""

from lacuna_model.languages.language import Language, Lexicon

_PYTHON_HEADERS = frozenset(b"if elif else for while def class with try except finally async match case".split())

PYTHON = Language(
    "python",
    (".py", ".pyi", ".pyw"),
    "tree_sitter_python",
    aliases=("py", "python3"),
    lexicon=Lexicon(
        links=(b" in x", b" else x", b"=x"),
        declarations=(b"def x(): pass",),
        line_comment=(b"#",),
        block_comment=(),
        quotes=(b'"""', b"'''", b'"', b"'"),
        columns=True,
        statement=b"pass",
        body=b": pass",
        terminator=b"",
        headers=_PYTHON_HEADERS,
    ),
    definitions=("python",),
)
