"""Which string or comment a text between gaps begins in, and which one it leaves open."""

import pytest
from tests.model.syntax.drive import require

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.text.literals import STATEMENT, carried_quote, find_literals


def lexicon(name: str) -> Lexicon:
    return require(name).lexicon


@pytest.mark.parametrize(
    ("name", "piece", "before", "inside"),
    [
        (
            "java",
            "\n that may be asked for, but need not be.\n <p>\n The rest is said further down in the text.\n",
            "*/",
            "*/",
        ),
        ("java", "\n * @param x the one\n * @return\n", "", "*/"),
        ("java", "\n    int x = f(1);\n    int y = g(x);\n    return x + y;\n", "*/", ""),
        (
            "go",
            "\n// The rest of it may be used and copied by all\n// without any limit, as the text above says.\n",
            "",
            "",
        ),
        ("javascript", "\n * accepts `text/*` and 'text/*'.\n */\nf()\n", "", "*/"),
        ("javascript", "\n  f()\n}\n\n/**\n * Takes `x and returns it.\n */\nfunction g(x) {\n", "", ""),
        ("javascript", "\n  }\n  var x = /\\s*/;\n  var y = x.test(z);\n", "", ""),
        ("javascript", "\n  more ${x}`\n  f()\n", "`", "`"),
        ("python", "\n    'zero'\n    >>> f(5)\n    'five'\n    >>> f(7)\n", "", '"""'),
        (
            "python",
            '\n    and as well as that.\n    """\n\n\nclass B(A):\n    """Works like the other, but for\n',
            "",
            '"""',
        ),
        (
            "python",
            "\n    kind: A[b] = B\n\n    def f(\n        self,\n        *args: t.Any,\n    ) -> t.Any:\n",
            '"""',
            "",
        ),
        ("python", '\n    """Says what the one does with\n    what the other one gives it\n', '"""', ""),
        ("python", "\n        # Says what is done here and\n        # that it is done for all.\n", '"""', ""),
        ("python", "\n            'one',\n            'two',\n        ],\n        a='b',\n", '"""', ""),
        ("python", "\n        self.a: b.C | None = d\n\n        self.e: int = 1\n", '"""', ""),
        ("python", '\n    x = 1\n    """Says what is done here\n    and by whom.\n    """\n    return f(x)\n', "", ""),
    ],
)
def test_the_lines_tell_which_literal_a_text_begins_in(name: str, piece: str, before: str, inside: str) -> None:
    assert carried_quote(piece.encode(), before.encode(), lexicon(name)) == inside.encode()


def test_a_comment_stays_open_until_its_end_and_a_string_until_the_line_end() -> None:
    assert find_literals(b" * more of it\n", lexicon("java"), b"*/").inside == b"*/"
    assert find_literals(b" * more */ int x;\n", lexicon("java"), b"*/").inside == b""
    assert find_literals(b"more of a name\n", lexicon("java"), b'"').inside == b""


def test_a_line_of_many_types_is_matched_without_backtracking() -> None:
    union = "a: " + " | ".join(["b[c]"] * 40)
    assert STATEMENT.match(f"{union} = None".encode())
    assert not STATEMENT.match(f"{union} is".encode())


@pytest.mark.parametrize(
    ("piece", "before", "inside"),
    [
        ('\n    x = 1\n    return x\n\n\ndef g():\n    """Adds the two of them\n\n    and says so.\n', '"""', ""),
        ('\n    and says what came of it.\n\n    Nothing else.\n    """\n    x = 1\n    return x\n', "", '"""'),
        ("\n    Adds the two of them\n    and says so,\n    to whoever asks.\n", "", '"""'),
        ("\n    x = 1\n    return f(x)\n", '"""', ""),
        ("\n    Adds.\n", '"""', '"""'),
    ],
)
def test_code_and_prose_tell_where_a_docstring_is(piece: str, before: str, inside: str) -> None:
    assert carried_quote(piece.encode(), before.encode(), require("python").lexicon) == inside.encode()
