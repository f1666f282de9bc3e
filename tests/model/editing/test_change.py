"""What an instruction asks for, read by its words."""

import pytest

from lacuna_model.editing.change import Asked


@pytest.mark.parametrize(
    ("instruction", "name", "said"),
    [
        ("remove parse", "parse", True),
        ("remove the load orders function", "loadOrders", True),
        ("rename `X` to y", "x", True),
        ("add type hints", "type_name", False),
        ("remove parser", "parse", False),
    ],
)
def test_a_name_is_said_in_one_word_or_in_its_pieces(instruction: str, name: str, said: bool) -> None:
    assert Asked(instruction).says(name) == said


@pytest.mark.parametrize(
    ("instruction", "asks"),
    [
        ("remove the comments", "less comments comments_alone"),
        ("remove unused functions", "less"),
        ("add a docstring", "adds comments comments_alone"),
        ("add type hints", "adds"),
        ("raise a ValueError if n is negative", "adds"),
        ("return -1 if malloc fails", "adds"),
        ("return null instead of -1 if it is missing", ""),
        ("use reduce", ""),
        ("add a deadline and a movie", "adds"),
        ("rename total to sum", ""),
        ("translate to German", "translates"),
        ("fix the spelling", "corrects"),
        ("fix the race", "corrects"),
        ("use double quotes", ""),
        ("make the title shorter", "less"),
        ("uncomment the last call", ""),
        ("entferne den Kommentar", "less comments comments_alone"),
        ("supprime les lignes", "less"),
        ("删除注释", "less"),
        ("inline x", "less"),
    ],
)
def test_what_an_instruction_asks_for(instruction: str, asks: str) -> None:
    asked = Asked(instruction)
    kinds = ("less", "adds", "comments", "comments_alone", "translates", "corrects")
    assert {kind for kind in kinds if getattr(asked, kind)} == set(asks.split())


def test_a_shared_word_is_one_of_four_letters_or_a_number() -> None:
    assert Asked("allow lines of 100 characters").shares("line-length = 88")
    assert Asked("use port 9000").shares("port = 1")
    assert not Asked("set the level").shares("file = a.log")
