"""Which string or comment a text leaves open."""

from tests.model.syntax.drive import require

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.text.literals import find_literals


def lexicon(name: str) -> Lexicon:
    return require(name).lexicon


def test_a_comment_stays_open_until_its_end_and_a_string_until_the_line_end() -> None:
    assert find_literals(b"/* more of it\n", lexicon("java")).inside == b"*/"
    assert find_literals(b"/* more */ int x;\n", lexicon("java")).inside == b""
    assert find_literals(b'x = "more of a name\n', lexicon("java")).inside == b""
