import pytest

from lacuna_server.http.shapes.question import Question


def test_a_newline_among_the_stops_asks_for_one_line() -> None:
    assert Question(before="", stop=("\n", "x")).request().regions[0].single_line
    assert not Question(before="", stop=("\n\n",)).request().regions[0].single_line


@pytest.mark.parametrize(
    ("before", "language"),
    [("# language: python\nx", "python"), ("-- language: lua\n", "lua"), ("// language: c++\n", "c++"), ("x = 1", "")],
)
def test_the_language_is_read_from_the_comment_of_minuet(before: str, language: str) -> None:
    assert Question(before=before).request().language == language
