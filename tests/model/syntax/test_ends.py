"""How a fill ends whose model ends it where it may not end: up to where it may, or written otherwise."""

from collections.abc import Sequence

import numpy as np
import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import Marginal, Model, delivered, fill, require, writes

from lacuna_model.core.constraint import Constraint, FillSoFar, Run
from lacuna_model.core.params import Region
from lacuna_model.decode.fill import Fill
from lacuna_model.syntax import SyntaxConstraint, parses

ROOM = 64


def ending(text: str, tokens: SmallTokens, other: str = "", more: str = "") -> Model:
    """A model that writes a text and ends; else the ``other`` text, or ``more`` behind the first one."""
    ids, end = tokens.encode(text), [tokens.eog_id]
    ways = [[*ids, *end, *tokens.encode(more)[1:]], [*tokens.encode(other), *end], [*ids, *tokens.encode(more), *end]]

    def model(_: int, position: int) -> Marginal:
        best = [way[position] if position < len(way) else tokens.eog_id for way in ways]
        return np.array(best), -np.arange(len(best), dtype=np.float32)

    return model


def test_lines_of_the_suffix_that_the_model_writes_too_are_cut_off(tokens: SmallTokens) -> None:
    before = "def f(a):\n    c = []\n    for b in a:\n        if b:\n"
    after = "        else:\n            c.append(1)\n    return c\n"
    written = "            c.append(b)\n    return c\n"
    assert delivered("python", before, after, ending(written, tokens), tokens) == "            c.append(b)\n"


@pytest.mark.parametrize(
    ("name", "before", "after", "written", "kept"),
    [
        ("python", "def f(a):\n    retu", "n set(a)\n", "rn True\n", "r"),
        ("python", "def f(a):\n    if not a: r", "f(a == []): return 1\n", "eturn 0\n    if(a): return 2\n", None),
        ("go", "package a\n\nfunc f() int {\n\tretu", "n 1\n}\n", "rn 2\n", "r"),
        ("javascript", "let a = b", "ngth + 1);\n", ".c(d.length)\n", ".c(d.le"),
    ],
)
def test_a_fill_may_end_within_a_token_that_the_gap_cuts(
    name: str, before: str, after: str, written: str, kept: str | None, tokens: SmallTokens
) -> None:
    found = delivered(name, before, after, ending(written, tokens), tokens)
    assert found is not None
    assert parses((before + found + after).encode(), require(name))
    assert written.startswith(found)
    assert kept is None or found == kept


LOOPS = "\n        for i in y:\n            if i:\n                continue\n            yield i\n"


@pytest.mark.parametrize(
    ("before", "fill", "after"),
    [
        ("import os\n\n\n", "@a\n@b(1)\n@c\n@d\n@e\ndef f(y):\n    pass\n", "\n\nz = 1\n"),
        ("class A:\n    ", "@a\n    @b\n    @c\n    @d\n    def f(self, y):", LOOPS),
        ("class A:\n", "    x = 1\n    y = 2\n    z = 3\n    w = 4\n\n    def f(self, y):", LOOPS),
        (
            "def f(y):\n    a = 1\n",
            "    b = 1\n    c = 1\n    for i in y:",
            "\n        if i:\n            continue\n    return 1\n",
        ),
    ],
)
def test_lines_that_a_definition_further_down_completes_are_kept(
    before: str, fill: str, after: str, tokens: SmallTokens
) -> None:
    assert delivered("python", before, after, ending(fill, tokens), tokens) == fill


def test_a_line_that_leads_nowhere_is_written_otherwise(tokens: SmallTokens) -> None:
    """After ``return`` only another header could follow, which the model does not write: it writes one in its place."""
    before, after = "def f(a, b):\n    c = a\n", "        return b\n"
    found = delivered("python", before, after, ending("    return c\n", tokens, "    if c:\n"), tokens)
    assert found is not None
    assert found.startswith("    if c:")


def test_a_block_without_a_body_is_written_on(tokens: SmallTokens) -> None:
    """The model's next best token is taken where the fill may not end, and it goes on from there."""
    before, after = "def f(a):\n", "    return a\n"
    found = delivered("python", before, after, ending("    if a:\n", tokens, more="        b()\n"), tokens)
    assert found == "    if a:\n        b()\n"


def test_a_body_is_not_left_empty_beside_a_gap_that_is_open(tokens: SmallTokens) -> None:
    text = b"def f(a):\n    \n\n\ndef g(b):\n    \n"
    regions = [Region(place, place, ROOM) for place in (text.index(b"\n\n"), len(text) - 1)]
    constraint = SyntaxConstraint(text, regions, require("python"), tokens)
    ids, log_probs = ending("", tokens, other="]")(0, 0)
    taken = constraint.take(0, [FillSoFar((), ROOM)] * 2, Run(ids[None], log_probs[None]))
    assert not taken.ends


def test_at_the_end_of_a_text_a_stop_rule_ends_a_fill_before_the_closers_that_are_due(tokens: SmallTokens) -> None:
    before, written = "class A {\n  f() {\n    return ", tuple(tokens.encode("this.b();"))
    start, ended = len(before.encode()), FillSoFar(written, ROOM, ended=True)
    for after, may_end in (("\n", True), ("\nlet c = {};\n", False)):
        region = Region(start, start, ROOM)
        constraint = SyntaxConstraint((before + after).encode(), [region], require("javascript"), tokens)
        assert constraint.may_end(0, ended) == may_end
    constraint = SyntaxConstraint((before + "\n").encode(), [Region(start, start, ROOM)], require("javascript"), tokens)
    assert constraint.may_end(0, ended)
    (found,) = constraint.verdict([ended], late=False).fills or ("",)
    assert "".join(found.split()) == "this.b();}}"
    constraint = SyntaxConstraint(b"local f = \n", [Region(10, 10, ROOM)], require("lua"), tokens)
    assert not constraint.may_end(0, FillSoFar(tuple(tokens.encode("function(x)")), ROOM, ended=True))


def test_nothing_is_added_that_a_region_of_one_line_does_not_take(tokens: SmallTokens) -> None:
    before, after = "module A\n  def f\n    b(1\n    ", "\n\n  def g\n    2\n  end\nend\n"
    found = delivered("ruby", before, after, writes("end", tokens), tokens, single_line=True)
    assert found is None or "\n" not in found


def test_a_corner_is_left_by_the_token_that_leads_to_it(tokens: SmallTokens) -> None:
    """Whatever word follows the first indentation, the block stays without a body: the indentation is written anew."""
    shallow, deep = (tokens.encode(" " * columns + "b")[0] for columns in (4, 8))
    words = [tokens.encode(f" {word}")[0] for word in ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")]
    ways = [[shallow, deep], words, tokens.encode("()")[:1], tokens.encode("\n"), [tokens.eog_id]]

    def model(_: int, position: int) -> Marginal:
        best = ways[min(position, len(ways) - 1)]
        return np.array((best * len(words))[: len(words)]), -np.arange(len(words), dtype=np.float32)

    found = delivered("python", "def f(a):\n    if a:\n", "    return a\n", model, tokens)
    assert found == tokens.decode_bytes([deep, words[0], ways[2][0]]).decode() + "\n"


def test_a_fill_does_not_go_on_far_behind_its_end(tokens: SmallTokens) -> None:
    """A stop rule would have ended the fill where it may not end; what the model writes behind that is left out."""
    before, after = "def f(a):\n    if a:\n", "    else:\n        return a\n"
    written = "        b()\n    return a\n"
    start = len(before.encode())
    constraint = SyntaxConstraint((before + after).encode(), [Region(start, start, ROOM)], require("python"), tokens)
    assert not constraint.may_end(0, FillSoFar(tuple(tokens.encode(written)), ROOM, ended=True))
    lengths = list[int]()
    more = "    c(a)\n" * 8
    verdict = fill(
        constraint,
        ending(written + more, tokens),
        [ROOM],
        tokens.eog_id,
        watch=lambda _, fills, __: lengths.append(len(fills[0].tokens)),
    )
    assert verdict.fills == ("        b()\n",)
    assert max(lengths) < len(tokens.encode(written + more)) - 8


@pytest.mark.parametrize("more", ["", "    c(a)\n" * 20])
def test_a_fill_that_leads_nowhere_begins_its_next_line_as_a_proof_does(tokens: SmallTokens, more: str) -> None:
    """Only a header may precede what is below, which the model writes only behind an ``if``; else it writes ``more``.

    The beginning of that line stays that lacks least to be a fill.
    """
    before, after = "def f(a):\n    if a:\n", "            return c\n        elif d:\n            return d\n"
    written, line, header = (
        tokens.encode(one) for one in ("        b()\n    return a\n", "        b()\n        if", " c:\n")
    )
    written, others = [*written, *tokens.encode(more)], [tokens.encode(one)[0] for one in (" d", " return", "\n")]
    known: list[int] = []

    def model(_: int, position: int) -> Marginal:
        way = [*line, *header] if known[: len(line)] == line else written
        best = [way[position] if position < len(way) else tokens.eog_id, *others]
        return np.array(best), -np.arange(len(best), dtype=np.float32)

    start = len(before.encode())
    constraint = SyntaxConstraint((before + after).encode(), [Region(start, start, ROOM)], require("python"), tokens)

    def see(_: Constraint, fills: Sequence[Fill], __: object) -> None:
        known[:] = fills[0].tokens

    verdict = fill(constraint, model, [ROOM], tokens.eog_id, watch=see)
    assert verdict.fills == ("        b()\n        if c:\n",)


def test_several_columns_are_tried_behind_a_header(tokens: SmallTokens) -> None:
    """A block is indented so deep that the model's third best column is the first that may follow."""
    columns = [tokens.encode(" " * width + "b")[0] for width in (4, 8, 12)]
    line = [columns[-1], *tokens.encode("b()\n"), tokens.eog_id]

    def model(_: int, position: int) -> Marginal:
        best = columns if position == 0 else [line[min(position, len(line) - 1)]] * len(columns)
        return np.array(best), -np.arange(len(best), dtype=np.float32)

    found = delivered("python", "def f(a):\n    if a:\n        if a:\n", "    return a\n", model, tokens)
    assert found == tokens.decode_bytes(line[:-1]).decode()


def test_the_suffix_keeps_its_column(tokens: SmallTokens) -> None:
    """Blanks at the end of a fill would make the next line the body of the block that it opens."""
    before, after = "def f(a):\n    b()\n", "    return a\n"
    found = delivered("python", before, after, writes("    if a:\n", tokens), tokens)
    assert found is None or not found.startswith("    if a:\n    ")


def test_a_wrong_word_at_the_end_of_a_line_costs_no_more_of_it(tokens: SmallTokens) -> None:
    """A line that may not end as it does keeps what stands before the word that led there."""
    before, after = "class A:\n    def f(self, b) ", "\n        return b\n"
    ids = tokens.encode('-> "C":')
    wrong = tokens.encode('-> "C d')
    place = next(at for at, pair in enumerate(zip(ids, wrong, strict=False)) if pair[0] != pair[1])

    def model(_: int, position: int) -> Marginal:
        own = ids[position] if position < len(ids) else tokens.eog_id
        other = wrong[position] if place <= position < len(wrong) else tokens.eog_id
        best = [other, own] if position >= place else [own, *tokens.encode("e")]
        return np.array(best), -np.arange(2, dtype=np.float32)

    found = delivered("python", before, after, model, tokens, max_lines=1, single_line=True)
    assert found == '-> "C":'
