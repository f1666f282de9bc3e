"""Stand-ins: what gaps hold until they are filled, and what markers and conflicts of a merge are read as."""

import pytest
from tests.model.scripted import sure
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import certain, delivered, fill, require, writes
from tests.model.syntax.test_properties import filled

from lacuna_model.core.constraint import FillSoFar
from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint, constraint_for, parses, stand_ins
from lacuna_model.syntax.stand_ins import named, one_side

# A text of each language whose markers stand for several kinds of things; the gap is at the bar.
TEXTS = {
    "python": "def a(x):\n    <<fill>>\n\nclass B:\n    def c(self):\n        return <<fill>>\n\nd = |\n",
    "java": "class A {\n  int a() { <<fill>> }\n  void b() { <<fill>> }\n  <<fill>>\n  int c() { return |; }\n}\n",
    "cpp": "int a() { return <<fill>>; }\nint b() {\n  <<fill>>\n}\nint c = |;\n",
    "rust": "fn a() -> i32 { <<fill>> }\nfn b() { if <<fill>> { <<fill>> } let x = |; }\n",
    "go": "package a\nfunc a() int { return <<fill>> }\nfunc b() {\n\t<<fill>>\n}\nvar c = |\n",
    "typescript": "type A = <<fill>>;\nfunction f(a: <<fill>>) { <<fill>> }\nconst b = |;\n",
    "json": '{"a": <<fill>>, "b": [1, <<fill>>], "c": |}\n',
    "css": "a { color: <<fill>>; <<fill>> }\nb { top: |; }\n",
    "html": '<p><<fill>></p><a href="<<fill>>">|</a>\n',
    "bash": "for i in <<fill>>; do <<fill>>; done\na=|\n",
    "yaml": "a: <<fill>>\nb: |\n",
}


def gap_of(text: str) -> tuple[bytes, Region]:
    before, after = text.encode().split(b"|")
    return before + after, Region(len(before), len(before), max_tokens=32)


@pytest.mark.parametrize("name", [name for name in TEXTS if name not in ("html", "yaml", "bash", "css")])
@pytest.mark.parametrize(("written", "is_taken"), [("1", True), ("1 1)", False)])
def test_fills_beside_markers_are_checked(tokens: SmallTokens, name: str, written: str, is_taken: bool) -> None:
    text, gap = gap_of(TEXTS[name])
    constraint = constraint_for(text, [gap], "", name, tokens, syntax=True)
    assert isinstance(constraint, SyntaxConstraint)
    verdict = fill(constraint, certain([tokens.encode(written)], tokens.eog_id), [32], tokens.eog_id)
    assert (verdict.fills == (written,)) == is_taken


@pytest.mark.parametrize("above", ["1", "<<fill>>"])
def test_what_is_suggested_while_typing_is_read_behind_markers(tokens: SmallTokens, above: str) -> None:
    """Behind a text that the grammar cannot read, only brackets are looked at."""
    text = b"fn f() -> i32 { %s }\nfn g() {\n    let a = " % above.encode()
    constraint = constraint_for(text, [Region(len(text), len(text))], "", "rust", tokens, syntax=True, open_ended=True)
    ids = tokens.encode("1 let b = 2;")
    kept = constraint.take(0, [FillSoFar(most=len(ids) + 2)], sure(ids)).kept
    assert tokens.decode_bytes(ids[:kept]).strip() == b"1 let"


def test_gaps_that_are_filled_later_are_not_guessed_beside_what_markers_break() -> None:
    text = b"def a():\n    return <<fill>>\n\nb = \nc = \n"
    regions = [Region(text.index(b"b =") + 4, text.index(b"b =") + 4), Region(len(text) - 1, len(text) - 1)]
    found = stand_ins(text, regions, require("python"))
    assert all(found)


def test_a_marker_in_a_region_or_around_the_cursor_stays() -> None:
    text = b"a = <<fill>> + <<fill>>\n"
    assert named(text, [Region(4, 12)]) == b"a = <<fill>> + __fill__\n"
    assert named(text, [Region(6, 6)]) == b"a = <<fill>> + __fill__\n"
    assert named(text, [Region(12, 12)]) == b"a = __fill__ + __fill__\n"


CONFLICT = b"<<<<<<< HEAD\nours\n||||||| base\nboth\n=======\ntheirs\n>>>>>>> branch\n"
TEXT = b"above\n" + CONFLICT + b"below\n"


def at(text: bytes, word: bytes, *, length: int = 0) -> Region:
    return Region(text.index(word), text.index(word) + length)


@pytest.mark.parametrize(
    ("word", "left"),
    [
        (b"above", b"above\nours\nbelow\n"),
        (b"below", b"above\nours\nbelow\n"),
        (b"ours", b"above\nours\nbelow\n"),
        (b"theirs", b"above\ntheirs\nbelow\n"),
        (b"both", TEXT),
    ],
)
def test_the_side_of_the_gap_stays(word: bytes, left: bytes) -> None:
    text, (region,) = one_side(TEXT, [at(TEXT, word, length=2)])
    assert text == left
    assert text[region.start : region.end] == word[:2]


def test_a_conflict_with_gaps_on_both_sides_or_in_its_marks_stays_whole() -> None:
    for regions in ([at(TEXT, b"ours"), at(TEXT, b"theirs")], [at(TEXT, b"ours", length=20)], [at(TEXT, b"=======")]):
        assert one_side(TEXT, regions) == (TEXT, regions)


def test_every_region_moves_by_the_conflicts_above_it() -> None:
    text = CONFLICT + b"middle\n" + CONFLICT + b"end"
    left, regions = one_side(text, [at(text, b"middle"), at(text, b"end")])
    assert [left[region.start :] for region in regions] == [b"middle\nours\nend", b"end"]


@pytest.mark.parametrize("text", [b"=======\nb\n", b"<<<<<<< HEAD\na\n=======\nb\n", b"<<<<<<<a\n=======\n>>>>>>>\n"])
def test_marks_alone_are_no_conflict(text: bytes) -> None:
    assert one_side(text, [Region(0, 0)])[0] == text


@pytest.mark.parametrize("fill_text", ["f(1)", "f(\n    1)"])
def test_a_fill_beside_a_conflict_is_checked_as_in_a_clean_file(tokens: SmallTokens, fill_text: str) -> None:
    after = "\n<<<<<<< HEAD\ny = 1\n=======\ny = 2\n>>>>>>> branch\n"
    for written, is_taken in ((fill_text, True), ("1 2", False)):
        assert (delivered("python", "x = ", after, writes(written, tokens), tokens) == written) == is_taken


GAPS = {
    "python": "def f(x):\n    if x:\n|\n    return [1, |\n\n\ndef g():\n|\n",
    "javascript": "function f(x) {\n  if (x) {\n|\n  return [1, |\n}\n\nfunction g() {|\n",
    "rust": "impl A {\n    fn f(x: u8) {\n        if x {\n|\n    }\n\n    fn g() {|\n}\n",
    "java": "class A {\n    int f(int x) {\n        if (x) {\n|\n    }\n\n    void g() {|\n}\n",
}


def cut_at_marks(marked: str, max_tokens: int) -> tuple[bytes, list[Region]]:
    """A text without its marks, and a region for each."""
    pieces = marked.encode().split(b"|")
    ends = [sum(map(len, pieces[: count + 1])) for count in range(len(pieces) - 1)]
    return b"".join(pieces), [Region(end, end, max_tokens=max_tokens) for end in ends]


@pytest.mark.parametrize("name", GAPS)
def test_stand_ins_make_the_text_valid(name: str) -> None:
    text, regions = cut_at_marks(GAPS[name], 12)
    found = stand_ins(text, regions, require(name))
    assert not parses(text, require(name))
    assert parses(filled(text, regions, tuple(found)), require(name))
