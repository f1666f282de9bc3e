from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.snippets.pieces import PieceCounter


@given(st.text())
def test_the_pieces_together_are_the_text(text: str) -> None:
    pieces = PieceCounter().encode(text)
    assert "".join(pieces) == text
    assert all(pieces)
