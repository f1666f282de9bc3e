import pytest

from lacuna_server.http.shapes.question import DEFAULT_TOKENS, MAX_TOKENS, Question


def test_the_gap_is_at_the_byte_offset_between_prefix_and_suffix() -> None:
    request = Question(before="é = ", after="\nx", temperature=0.5, seed=7, candidates=2).request()
    (region,) = request.regions
    assert (request.text, region.start, region.end) == ("é = \nx", 5, 5)
    assert (request.options.temperature, request.options.seed, request.candidates) == (0.5, 7, 2)


@pytest.mark.parametrize(("asked", "given"), [(None, DEFAULT_TOKENS), (12, 12), (4096, MAX_TOKENS)])
def test_the_length_is_bounded(asked: int | None, given: int) -> None:
    (region,) = Question(before="", max_tokens=asked, min_tokens=5000).request().regions
    assert (region.max_tokens, region.min_tokens) == (given, given)


def test_a_newline_among_the_stops_asks_for_one_line() -> None:
    assert Question(before="", stop=("\n", "x")).request().regions[0].single_line
    assert not Question(before="", stop=("\n\n",)).request().regions[0].single_line


@pytest.mark.parametrize(
    ("before", "language"),
    [("# language: python\nx", "python"), ("-- language: lua\n", "lua"), ("// language: c++\n", "c++"), ("x = 1", "")],
)
def test_the_language_is_read_from_the_comment_of_minuet(before: str, language: str) -> None:
    assert Question(before=before).request().language == language


def test_a_request_for_zero_tokens_is_a_warm_up() -> None:
    assert Question(before="", max_tokens=0).is_warm_up
    assert not Question(before="").is_warm_up
