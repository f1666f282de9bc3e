"""What is open at the end of a text."""

from tests.model.syntax.drive import require

from lacuna_model.syntax.text.scan import scan


def test_a_scan_finds_open_brackets_strings_and_headers() -> None:
    lexicon = require("python").lexicon
    state = scan(b'if f(a, [b, "c', lexicon)
    assert state.closers == (b")", b"]")
    assert state.inside == b'"'
    assert state.header_open
    assert scan(b'd"]):\n', lexicon, state).body_due == b""
    assert [bracket.closer for bracket in scan(b"x) + y]\n", lexicon).unmatched] == [b")", b"]"]
