import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_lsp.documents.document import Encoding, byte_column, client_column, cuts_character

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
lines = st.text(st.sampled_from("ab\t ä€\ufeff😀👩‍👧\u2028\x0c\u0301\U0010ffff"), max_size=12)


def units(text: str, encoding: Encoding) -> int:
    """The number of code units, counted naively for every character."""
    width = {"utf-8": lambda c: len(c.encode()), "utf-16": lambda c: 1 + (ord(c) > 0xFFFF), "utf-32": lambda c: 1}
    return sum(width[encoding](character) for character in text)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(line=lines)
def test_every_column_between_characters_is_converted_there_and_back(encoding: Encoding, line: str) -> None:
    for index in range(len(line) + 1):
        character, column = units(line[:index], encoding), len(line[:index].encode())
        assert byte_column(line.encode(), character, encoding) == column
        assert client_column(line.encode(), column, encoding) == character
        assert not cuts_character(line.encode(), character, encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(line=lines, character=st.integers(0, 60))
def test_any_client_column_maps_to_a_character_boundary_in_the_line(
    encoding: Encoding, line: str, character: int
) -> None:
    column = byte_column(line.encode(), character, encoding)
    before = line.encode()[:column].decode()
    assert units(before, encoding) <= character
    rest = line[len(before) :]
    assert not rest or units(before + rest[0], encoding) > character


def test_a_column_inside_a_surrogate_pair_maps_to_the_start_of_its_character() -> None:
    line = "x😀y".encode()
    assert byte_column(line, 2, "utf-16") == 1
    assert cuts_character(line, 2, "utf-16")
    assert not cuts_character(line, 3, "utf-16")
