"""The rule, through the constraint's own protocol: read, prove, go back; and what is delivered."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import Marginal, Model, certain, fill, require
from tests.model.syntax.test_properties import Samples, cut

from lacuna_model.core.constraint import FillSoFar, Run, Taken
from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint, parses


def proving(before: str, after: str, name: str, *, room: int = 40, **rules: object) -> SyntaxConstraint:
    start = len(before.encode())
    region = Region(start, start, room, **rules)  # type: ignore[arg-type]
    return SyntaxConstraint((before + after).encode(), [region], require(name), TOKENS)


TOKENS: SmallTokens


@pytest.fixture(autouse=True)
def _tokens(tokens: SmallTokens) -> None:
    global TOKENS
    TOKENS = tokens


def preferring(*texts: str) -> Model:
    """A model that writes the first text; after a token that it did not choose, the next text from there on."""
    ways = [[*TOKENS.encode(text), TOKENS.eog_id] for text in texts]

    def model(_: int, position: int) -> Marginal:
        ids = list(dict.fromkeys(way[position] if position < len(way) else TOKENS.eog_id for way in ways))
        return np.array((ids * len(ways))[: len(ways)]), -np.arange(len(ways), dtype=np.float32)

    return model


def alone(tokens: Sequence[int]) -> Run:
    """A run without other candidates."""
    return Run(np.array(tokens)[:, None], np.zeros((len(tokens), 1), np.float32))


def deliver(constraint: SyntaxConstraint, model: Model, room: int = 40) -> str | None:
    verdict = fill(constraint, model, [room], TOKENS.eog_id)
    return verdict.fills[0] if verdict.fills is not None else None


def test_closers_that_are_due_are_added() -> None:
    assert deliver(proving("x = ", "\ny = 1\n", "python"), certain([TOKENS.encode("f(a[0")], 0)) == "f(a[0])"


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
def test_no_name_and_no_statement_is_added(name: str, before: str, after: str, written: str) -> None:
    """What the model did not write is not delivered: rather a shorter fill, or none."""
    found = deliver(proving(before, after, name), certain([TOKENS.encode(written)], 0))
    assert found is None or written.startswith(re.sub(rb"[\s)\]};,]*\Z", b"", found.encode()).decode())


def test_a_line_that_cannot_be_completed_is_written_otherwise() -> None:
    """The block needs a deeper line: the fill goes back to its beginning and takes the model's other token."""
    before, after = "def f():\n    for a in b:\n", "\n        c()\n"
    constraint = proving(before, after, "python")
    found = deliver(constraint, preferring("    return 1", "        d()"))
    assert found is not None
    assert parses((before + found + after).encode(), require("python"))
    assert found.startswith("        ")
    assert constraint.stats.vetoes > 0


def test_a_token_that_cannot_be_read_is_passed_over() -> None:
    constraint = proving("x = f(a, ", ")\n", "python")
    assert deliver(constraint, preferring("b]", "b")) == "b"
    assert constraint.stats.vetoes > 0


def test_what_a_text_with_an_empty_gap_does_not_lack_is_asked_of_every_line() -> None:
    """The line is laid out unlike its block, which does not make the text a broken one."""
    constraint = proving(
        "int f(int a) {\n    while (a) {\n        a--;\n    }\n ", " }\n", "cpp", max_lines=1, single_line=True
    )
    assert deliver(constraint, preferring("[[]]")) != "[[]]"


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
    constraint = proving("x = ", "\n", "python", regex="[0-9]+")
    assert deliver(constraint, preferring("foo", "12")) == "12"
    constraint = proving("x = ", "\n", "python", must_not_contain=("foo",))
    assert "foo" not in (deliver(constraint, preferring("foo", "b")) or "")


def test_without_a_language_the_rules_alone_are_kept(tokens: SmallTokens) -> None:
    constraint = SyntaxConstraint(b"a b", [Region(2, 2, 8, single_line=True)], None, tokens)
    assert fill(constraint, certain([tokens.encode("(\n(")], 0), [8], 0).fills == ("(",)


def test_what_is_decided_does_not_depend_on_how_many_tokens_come_at_once(tokens: SmallTokens) -> None:
    def taken(step: int) -> tuple[int, ...]:
        constraint, found = proving("def f(a):\n", "    return a\n", "python"), ()
        while len(found) < len(ids):
            run = ids[len(found) : len(found) + step]
            one = constraint.take(0, [FillSoFar(found, len(ids) + 4)], alone(run))
            assert one.kept > len(found)
            found = (*found, *run)[: one.kept] + one.write
        return found

    ids = tokens.encode("    b = (a\n    )\n    c = b\n")
    assert taken(1) == taken(3) == taken(100)


def test_what_cannot_be_read_because_of_a_bracket_lost_above_is_taken() -> None:
    """What the text before the gap says of open brackets is wrong: only the end of the fill tells what it is worth."""
    before = (
        "module Shop\n  class Basket\n    def add(price)\n      2.times do |i|\n        @items << { price: price \n"
    )
    after = "\n\n    def total\n      @items.sum { |item| item[:price] }\n    end\n  end\nend\n"
    (first,) = TOKENS.encode("end")
    constraint = proving(before + "      end\n      self\n    ", after, "ruby", single_line=True)
    assert constraint.take(0, [FillSoFar(most=4)], alone([first])) == Taken(1)
