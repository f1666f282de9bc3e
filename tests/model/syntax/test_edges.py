"""Texts that are easy to get wrong: line ends, tabs, other scripts, healed text, gaps inside literals."""

import numpy as np
import pytest

from lacuna_model.core.params import Region
from lacuna_model.languages.python import compiled
from lacuna_model.syntax import SyntaxConstraint, constraint_for, parses
from lacuna_model.text.lines import finish_character

from .cases import Case, load
from .conftest import SmallTokens
from .drive import certain, delivered, fill, noisy, require, writes


@pytest.mark.parametrize("noise", [0.3, 1.0])
@pytest.mark.parametrize("case", load("python_text"))
def test_a_noisy_model_gives_valid_python_or_no_fill(tokens: SmallTokens, case: Case, noise: float) -> None:
    ids = tokens.encode(case.takes[0])
    for seed in range(3):
        model = noisy([ids], tokens, np.random.default_rng(seed), noise)
        found = delivered("python", case.before, case.after, model, tokens, room=len(ids) + 6)
        if found is not None:
            compiled((case.before + found + case.after).removeprefix("\ufeff"))


@pytest.mark.parametrize("lead", range(0xC2, 0xF5))
def test_every_lead_byte_can_be_finished(lead: int) -> None:
    (bytes([lead]) + finish_character(bytes([lead]))).decode()


def test_a_fill_continues_after_the_healed_text(tokens: SmallTokens) -> None:
    before, after = "x = fo", "\ny = 2\n"
    text, ids = (before + after).encode(), tokens.encode("foo(1)")
    region = Region(len(before), len(before), max_tokens=12)
    for noise in (0.0, 1.0):
        constraint = SyntaxConstraint(text, [region], require("python"), tokens)
        model = noisy([ids], tokens, np.random.default_rng(1), noise) if noise else certain([ids], tokens.eog_id)
        verdict = fill(constraint, model, [region.max_tokens], tokens.eog_id, prefixes=[b"fo"])
        assert verdict.fills is not None
        assert noise or verdict.fills == ("o(1)",)
        assert parses((before + verdict.fills[0] + after).encode(), require("python"))


def test_healed_brackets_belong_to_the_prefix(tokens: SmallTokens) -> None:
    """The tokens of a fill begin with a healed bracket. It belongs to the prefix; the fill must not count it."""
    pieces = [
        "entries.append(\n    Entry(\n        day=",
        ",\n        amount=Decimal(",
        "),\n        note=",
        ",\n    )\n)\n",
    ]
    starts = [len("".join(pieces[: gap + 1])) for gap in range(3)]
    text, truths = "".join(pieces).encode(), ["3", "4", "a"]
    constraint = SyntaxConstraint(text, [Region(start, start) for start in starts], require("python"), tokens)
    prefixes = [text[start - 1 : start] for start in starts]
    ids = [tokens.encode(one.decode() + truth) for one, truth in zip(prefixes, truths, strict=True)]
    assert fill(constraint, certain(ids, tokens.eog_id), [16] * 3, tokens.eog_id, prefixes=prefixes).fills == (*truths,)


def test_without_room_for_a_valid_fill_the_status_is_no_valid_fill(tokens: SmallTokens) -> None:
    constraint = constraint_for(b"def f(a, b", [Region(10, 10, max_tokens=1)], "a.py", "", tokens, syntax=True)
    verdict = fill(constraint, noisy([[5]], tokens, np.random.default_rng(0), 1.0), [1], tokens.eog_id)
    assert verdict.status == "no_valid_fill"
    assert verdict.fills is None
    assert "\n" not in verdict.message


def test_a_model_that_proposes_to_leave_a_string_does_not_leave_it(tokens: SmallTokens) -> None:
    before, after = 'name = input()\nprint("Hello ', '", name)\n'
    found = delivered("python", before, after, writes('" + name + "', tokens), tokens, single_line=True)
    assert found is not None
    assert '"' not in found.replace('\\"', "")


TWICE = [case for case in load("declared_twice") if case.values[0].refuses]  # type: ignore[union-attr]


@pytest.mark.parametrize("case", TWICE)
def test_a_model_that_knows_only_a_declared_name_gets_no_other_one(case: Case, tokens: SmallTokens) -> None:
    model = writes(case.refuses[0], tokens)
    found = delivered(case.language, case.before, case.after, model, tokens, room=16, single_line=True)
    assert found is None or case.refuses[0].startswith(found.rstrip(";"))
