import pytest
from tests.server.refactor.bench import Bench

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_server.refactor.rewriting.rewrite import Rewrite, disjoint, parse_parts, parse_template

KNOWN = frozenset({"A", "ARGS"})


@pytest.mark.parametrize(
    ("hole", "region"),
    [
        ("<<fill>>", Region(0, 0)),
        ("<<fill:line>>", Region(0, 0, single_line=True)),
        ("<<fill:lines=3:tokens=20>>", Region(0, 0, max_lines=3, max_tokens=20)),
        ("<<fill:regex=[a-z]:(x|y)>>", Region(0, 0, regex="[a-z]:(x|y)")),
        (r"<<fill:line:regex=<\w+\x3e>>", Region(0, 0, single_line=True, regex=r"<\w+\x3e")),
    ],
)
def test_the_options_of_a_hole_are_parsed(hole: str, region: Region) -> None:
    assert parse_parts(f"vector<{hole}>") == ("vector<", region, ">")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$B", r"the template uses \$B, which nothing binds; bound: \$A, \$ARGS"),
        ("<<fill:word>>", "a hole has no option 'word'"),
        ("<<fill:tokens=0>>", "'tokens=0' of a hole is not a number from 1 to 1024"),
        (f"<<fill:tokens={'9' * 5_000}>>", "of a hole is not a number from 1 to 1024"),
        ("<<fill:lines=many>>", "'lines=many' of a hole is not a number"),
        ("<<fill:regex=(>>", r"regex '\(' is not supported"),
        ("<<fill:regex=(?=x)y>>", "is not supported"),
    ],
)
def test_bad_templates_are_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message) as refused:
        parse_template(text, KNOWN)
    assert "\n" not in str(refused.value)


def rewrite(start: int, end: int) -> Rewrite:
    return Rewrite(start, end, ("x",), f"{start}-{end}")


def test_the_outermost_of_overlapping_places_is_taken(bench: Bench) -> None:
    source = bench.source("abc\ndefghi\n")
    kept, refused = disjoint(source, [rewrite(5, 7), rewrite(0, 2), rewrite(4, 9), rewrite(2, 2), rewrite(9, 9)])
    assert [item.label for item in kept] == ["0-2", "2-2", "4-9", "9-9"]
    assert refused == ["code.py:2:1: overlaps the place at 2:0"]
