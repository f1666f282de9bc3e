"""Ends of the model that were refused: where a fill is cut instead of being completed with made-up names."""

from tests.model.syntax.drive import require

from lacuna_model.syntax.search.refused_ends import RefusedEnds


def cuts(head: bytes, whole: bytes, fill: bytes, behind: bytes) -> list[bytes]:
    overruled = RefusedEnds([behind], require("javascript").lexicon)
    overruled.note(0, head, whole)
    return list(overruled.cuts(0, fill))


def test_a_fill_is_cut_before_the_first_made_up_name_at_line_ends() -> None:
    head, whole, fill = b"a = 1\n    b", b"a = 1\n    b\n\ndef x():\n    if x:", b"a = 1\n    b\n\ndef y():\n    pass"
    assert cuts(head, whole, fill, b"\nc") == [b"a = 1\n    b", b"a = 1", b""]
    assert cuts(head, whole, fill, b"c") == [b"a = 1\n    b", b"a = 1\n", b""]
    assert cuts(head, whole, b"a = 1\n    b\n\nclass y:", b"") == []  # the model continued in another way


def test_a_fill_is_cut_at_the_tokens_of_its_last_line() -> None:
    assert cuts(b"a = b()?;", b"a = b()?;x", b"a = b()?;x()", b"\n.c();") == [
        b"a = b()?;",
        b"a = b()?",
        b"a = b()",
        b"a = b(",
        b"a = b()",
        b"a = b",
        b"a =",
        b"a",
        b"",
    ]


def test_brackets_that_a_cut_leaves_open_are_closed() -> None:
    found = cuts(b"f({a: ['(',", b"f({a: ['(',x", b"f({a: ['(',x]})", b"")
    assert found[:3] == [b"f({a: ['(',", b"f({a: ['('", b"f({a: ['(']})"]


def test_a_fill_is_cut_before_a_closer_that_begins_the_suffix() -> None:
    assert cuts(b"f(a))", b"f(a))(x()", b"f(a))(x()", b" );") == [b"f(a))", b"f(a)", b"f(a", b""]
    assert cuts(b'a")', b'a")(', b'a")(', b")") == [b'a")', b'a"', b""]  # only a bracket was added


def test_closers_and_an_empty_block_do_not_count_as_made_up() -> None:
    assert cuts(b"f(a", b"f(a)\n", b"f(a)\n", b"") == []
    assert cuts(b"f(a, b", b"f(a", b"f(a", b"") == []
    assert cuts(b"if (a)", b"if (a) {}", b"if (a) {}", b"\n") == []


def test_only_the_first_refused_end_of_a_gap_counts() -> None:
    overruled = RefusedEnds([b"", b""], None)
    overruled.note(0, b"a", b"a + x")
    overruled.note(0, b"a + x", b"a + x + y")
    assert list(overruled.cuts(0, b"a + x + y")) == [b"a", b""]
    assert list(overruled.cuts(1, b"a + x + y")) == []
