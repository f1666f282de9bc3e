"""Ends that were overruled: what of a fill is cut where names would be made up."""

from lacuna_model.syntax.overruled import Overruled


def test_a_fill_is_cut_in_front_of_the_first_made_up_name_at_ends_of_lines() -> None:
    overruled = Overruled()
    overruled.note(0, b"a = 1\n    b", b"a = 1\n    b\n\ndef x():\n    if x:")
    found = list(overruled.cuts(0, b"a = 1\n    b\n\ndef y():\n    pass", b"\nc"))
    assert found == [b"a = 1\n    b", b"a = 1", b""]
    found = list(overruled.cuts(0, b"a = 1\n    b\n\ndef y():\n    pass", b"c"))
    assert found == [b"a = 1\n    b", b"a = 1\n", b""]
    assert list(overruled.cuts(0, b"a = 1\n    b\n\nclass y:", b"")) == []  # the model has gone on otherwise
    assert list(overruled.cuts(1, b"a = 1", b"")) == []


def test_what_only_closes_is_no_name() -> None:
    overruled = Overruled()
    overruled.note(0, b"f(a", b"f(a)\n")
    overruled.note(1, b"f(a, b", b"f(a")
    assert list(overruled.cuts(0, b"f(a)\n", b"")) == []
    assert list(overruled.cuts(1, b"f(a", b"")) == []


def test_the_first_end_counts() -> None:
    overruled = Overruled()
    overruled.note(0, b"a", b"a + x")
    overruled.note(0, b"a + x", b"a + x + y")
    assert list(overruled.cuts(0, b"a + x + y", b"")) == [b"a", b""]


def test_a_fill_ends_in_front_of_a_closer_that_stands_behind_it() -> None:
    overruled = Overruled()
    overruled.note(0, b"f(a))", b"f(a))(x()")
    overruled.note(1, b'a")', b'a")(')
    overruled.note(2, b"if (a)", b"if (a) {}")
    assert list(overruled.cuts(0, b"f(a))(x()", b" );")) == [b"f(a))", b"f(a)", b"f(a", b""]
    assert list(overruled.cuts(1, b'a")(', b")")) == [b'a")', b'a"']  # only brackets were put there
    assert list(overruled.cuts(2, b"if (a) {}", b"\n")) == [b"if (a)"]
