from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.snippets.pieces import PieceCounter


@given(st.text())
def test_the_pieces_together_are_the_text(text: str) -> None:
    pieces = PieceCounter().encode(text)
    assert "".join(pieces) == text
    assert all(pieces)


def test_code_is_split_as_tokenizers_do() -> None:
    pieces = PieceCounter().encode("\tdef open_account(self, 10):\n\n    return")
    assert pieces == ["\tdef", " open", "_", "account", "(self", ",", " ", "1", "0", "):", "\n\n", "   ", " return"]
    assert PieceCounter().encode("internationalization") == ["interna", "tionali", "zation"]
