"""The rule, through the constraint's own protocol: read, prove, go back; and what is delivered."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import Marginal, Model, certain, delivered, fill, require, writes
from tests.model.syntax.test_properties import Samples, cut

from lacuna_model.core.constraint import FillSoFar, Run, Taken
from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint, parses


def proving(before: str, after: str, tokens: SmallTokens) -> SyntaxConstraint:
    region = Region(len(before), len(before), 40)
    return SyntaxConstraint((before + after).encode(), [region], require("python"), tokens)


def preferring(tokens: SmallTokens, *texts: str) -> Model:
    """A model that writes the first text; after a token that it did not choose, the next text from there on."""
    ways = [[*tokens.encode(text), tokens.eog_id] for text in texts]

    def model(_: int, position: int) -> Marginal:
        ids = list(dict.fromkeys(way[position] if position < len(way) else tokens.eog_id for way in ways))
        return np.array((ids * len(ways))[: len(ways)]), -np.arange(len(ways), dtype=np.float32)

    return model


def alone(tokens: Sequence[int]) -> Run:
    """A run without other candidates."""
    return Run(np.array(tokens)[:, None], np.zeros((len(tokens), 1), np.float32))


def test_closers_that_are_due_are_added(tokens: SmallTokens) -> None:
    assert delivered("python", "x = ", "\ny = 1\n", writes("f(a[0", tokens), tokens) == "f(a[0])"


@pytest.mark.parametrize(
    ("name", "before", "after", "written"),
    [
        ("python", "x = ", "\ny = 1\n", "a +"),
        ("python", "def f():\n    ", "\n\n\ny = 1\n", "if a:"),
        ("typescript", "const a = ", "\nconst b = 1;\n", "f(c,"),
        ("go", "package a\n\nfunc f() {\n\t", "\n}\n", "if err != nil"),
        ("c", "int f() {\n  return ", "\n}\n", "a *"),
        ("rust", "fn f() {\n    let x = ", "\n}\n", "match y"),
    ],
)
def test_no_name_and_no_statement_is_added(
    name: str, before: str, after: str, written: str, tokens: SmallTokens
) -> None:
    """What the model did not write is not delivered: rather a shorter fill, or none."""
    found = delivered(name, before, after, writes(written, tokens), tokens)
    assert found is None or written.startswith(re.sub(rb"[\s)\]};,]*\Z", b"", found.encode()).decode())


def test_a_line_that_cannot_be_completed_is_written_otherwise(tokens: SmallTokens) -> None:
    """The block needs a deeper line: the fill goes back to its beginning and takes the model's other token."""
    before, after = "def f():\n    for a in b:\n", "\n        c()\n"
    found = delivered("python", before, after, preferring(tokens, "    return 1", "        d()"), tokens)
    assert found is not None
    assert parses((before + found + after).encode(), require("python"))
    assert found.startswith("        ")


def test_a_token_that_cannot_be_read_is_passed_over(tokens: SmallTokens) -> None:
    constraint = proving("x = f(a, ", ")\n", tokens)
    assert fill(constraint, preferring(tokens, "b]", "b"), [40], tokens.eog_id).fills == ("b",)
    assert constraint.stats.vetoes > 0


def test_what_a_text_with_an_empty_gap_does_not_lack_is_asked_of_every_line(tokens: SmallTokens) -> None:
    """The line is laid out unlike its block, which does not make the text a broken one."""
    before, after = "int f(int a) {\n    while (a) {\n        a--;\n    }\n ", " }\n"
    model = preferring(tokens, "[[]]")
    assert delivered("cpp", before, after, model, tokens, max_lines=1, single_line=True) != "[[]]"


def test_fills_that_are_valid_together_are_delivered_in_any_order(samples: Samples, tokens: SmallTokens) -> None:
    language, text = samples["rust"]
    hollow, regions, truths = cut(text, tokens, 71, 3, 12)
    constraint = SyntaxConstraint(hollow, regions, language, tokens)
    budgets = [region.max_tokens for region in regions]
    verdict = fill(constraint, certain(truths, tokens.eog_id), budgets, 0, rng=np.random.default_rng(71))
    assert verdict.fills == tuple(tokens.decode_bytes(truth).decode() for truth in truths)


def test_later_gaps_hold_stand_ins_until_they_are_filled(tokens: SmallTokens) -> None:
    text = b"f(a=, b=, c=)\n"
    regions = [Region(place, place, 8) for place in (4, 8, 12)]
    constraint = SyntaxConstraint(text, regions, require("python"), tokens)
    ids = [tokens.encode(one) for one in ("1", "[2", "3")]
    assert fill(constraint, certain(ids, 0), [8] * 3, 0).fills == ("1", "[2]", "3")


def test_region_rules_are_kept_at_every_token(tokens: SmallTokens) -> None:
    assert delivered("python", "x = ", "\n", preferring(tokens, "foo", "12"), tokens, regex="[0-9]+") == "12"
    found = delivered("python", "x = ", "\n", preferring(tokens, "foo", "b"), tokens, must_not_contain=("foo",))
    assert "foo" not in (found or "")


def test_without_a_language_the_rules_alone_are_kept(tokens: SmallTokens) -> None:
    constraint = SyntaxConstraint(b"a b", [Region(2, 2, 8, single_line=True)], None, tokens)
    assert fill(constraint, certain([tokens.encode("(\n(")], 0), [8], 0).fills == ("(",)


def test_what_is_decided_does_not_depend_on_how_many_tokens_come_at_once(tokens: SmallTokens) -> None:
    def taken(step: int) -> tuple[int, ...]:
        constraint, found = proving("def f(a):\n", "    return a\n", tokens), ()
        while len(found) < len(ids):
            run = ids[len(found) : len(found) + step]
            one = constraint.take(0, [FillSoFar(found, len(ids) + 4)], alone(run))
            assert one.kept > len(found)
            found = (*found, *run)[: one.kept] + one.write
        return found

    ids = tokens.encode("    b = (a\n    )\n    c = b\n")
    assert taken(1) == taken(3) == taken(100)


def test_what_cannot_be_read_because_of_a_bracket_lost_above_is_taken(tokens: SmallTokens) -> None:
    """What the text before the gap says of open brackets is wrong: only the end of the fill tells what it is worth."""
    before = (
        "module Shop\n  class Basket\n    def add(price)\n      2.times do |i|\n        @items << { price: price \n"
    )
    after = "\n\n    def total\n      @items.sum { |item| item[:price] }\n    end\n  end\nend\n"
    (first,) = tokens.encode("end")
    before += "      end\n      self\n    "
    region = Region(len(before), len(before), 40, single_line=True)
    constraint = SyntaxConstraint((before + after).encode(), [region], require("ruby"), tokens)
    assert constraint.take(0, [FillSoFar(most=4)], alone([first])) == Taken(1)
