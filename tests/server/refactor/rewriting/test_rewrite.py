from tests.server.refactor.bench import Bench

from lacuna_server.refactor.rewriting.rewrite import Rewrite, disjoint


def rewrite(start: int, end: int) -> Rewrite:
    return Rewrite(start, end, ("x",), f"{start}-{end}")


def test_the_outermost_of_overlapping_places_is_taken(bench: Bench) -> None:
    source = bench.source("abc\ndefghi\n")
    kept, refused = disjoint(source, [rewrite(5, 7), rewrite(0, 2), rewrite(4, 9), rewrite(2, 2), rewrite(9, 9)])
    assert [item.label for item in kept] == ["0-2", "2-2", "4-9", "9-9"]
    assert refused == ["code.py:2:1: overlaps the place at 2:0"]


def test_equal_places_count_once_and_a_place_takes_only_one_insertion(bench: Bench) -> None:
    source = bench.source("abc\n")
    first, same = rewrite(0, 2), Rewrite(0, 2, ("x",), "by another rule")
    assert disjoint(source, [first, same]) == ([first], [])
    kept, refused = disjoint(source, [rewrite(1, 1), Rewrite(1, 1, ("y",), "y"), rewrite(1, 3)])
    assert [item.label for item in kept] == ["1-1", "1-3"]
    assert len(refused) == 1
