import pytest

from lacuna_model.core.constraint import FillSoFar, fill_text
from lacuna_model.tokens.tokenizer import Tokenizer


@pytest.mark.parametrize(
    ("text", "ended", "late", "expected"),
    [
        ("x = 1\ny =", False, True, "x = 1\n"),
        ("x = 1\ny =", True, True, "x = 1\ny ="),
        ("x = 1\ny =", False, False, "x = 1\ny ="),
        ("x =", False, True, ""),
    ],
)
@pytest.mark.parametrize("prefix", ["", "\nif"])
def test_only_an_open_fill_is_cut_to_whole_lines(
    tokenizer: Tokenizer, prefix: str, text: str, ended: bool, late: bool, expected: str
) -> None:
    fill = FillSoFar(tuple(tokenizer.encode(prefix + text)), 99, ended, prefix.encode())
    assert fill_text(fill, tokenizer, late=late) == expected


def test_half_a_character_at_the_end_is_dropped(tokenizer: Tokenizer) -> None:
    half = FillSoFar(tuple(tokenizer.encode("x\U0001f600")[:3]), 99)
    assert fill_text(half, tokenizer, late=False) == "x"
