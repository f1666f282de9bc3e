"""A fill is what the model writes greedily left to right, whatever was drafted. Gaps are filled in order."""

from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model import tiny

from lacuna_model.core.constraint import Constraint
from lacuna_model.core.context import Layout, finished
from lacuna_model.decode.denoise import denoise
from lacuna_model.decode.fill import Fill, Key
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.costs import AcceptanceRates, DraftedToken
from lacuna_model.fim.drafts import Drafts, WrittenFill
from lacuna_model.fim.reading import FimReader

from . import tiny_fim
from .test_context import prompt

MODEL = tiny_fim.loaded()
BUDGET = 14


class Guesses:
    """A fake source of drafts: it drafts the rest of the first guess that begins with the tokens written so far."""

    def __init__(self, *guesses: Sequence[int]) -> None:
        self._guesses = guesses

    def draft(self, key: Key, fill: WrittenFill, rows: int, run: Sequence[DraftedToken] = ()) -> list[DraftedToken]:
        written = list(fill.written)
        first = self._guesses[0] if self._guesses else []
        fitting = (list(guess[len(written) :]) for guess in self._guesses if list(guess[: len(written)]) == written)
        return [DraftedToken(token, 0.5, "project") for token in next(fitting, list(first))[: max(fill.room, 0)]]

    def with_masks(self, drafted: list[DraftedToken], rows: int, most: int) -> tuple[list[DraftedToken], int]:
        return drafted, 0

    def filled(self, fills: Sequence[Sequence[int]]) -> None:
        """Do nothing: the guesses are given."""

    def verified(self, guesses: Sequence[DraftedToken], held: int) -> None:
        assert 0 <= held <= len(guesses)


def run(
    layout: Layout,
    guesses: Guesses | None,
    candidate_begin: Sequence[int] = (),
    constraint: Constraint | None = None,
) -> tuple[list[list[int]], int]:
    """The tokens that fill every gap of a layout, and the number of passes."""
    context = FimContext(MODEL.tracks(), MODEL.tokenizer, MODEL.fim, near=10_000)
    context.update(layout)
    drafts = Drafts(layout, (), MODEL.costs, AcceptanceRates(), MODEL.tokenizer.special_ids)
    reader = FimReader(MODEL, context, drafts if guesses is None else cast(Drafts, guesses), layout)
    fills = [Fill(gap, BUDGET, int(bool(gap.prefix)), begin=candidate_begin) for gap in layout.gaps]
    constraints, tokens = [constraint or Constraint(MODEL.tokenizer)], MODEL.tokenizer
    loop = denoise(reader, fills, constraints, tokens, deadline=None)
    assert finished(loop).outcome == "ok"
    return [fill.tokens for fill in fills], reader.passes


def test_healed_text_that_is_written_again_as_one_token_costs_no_pass() -> None:
    """The prefix ends within a line. Its last token is written again in the pass that finds the next token."""
    layout = tiny_fim.laid_out(MODEL, tiny.CODE[:200], tiny.CODE[230:])
    prefix = layout.gaps[0].prefix
    (fill,), passes = run(layout, None)
    assert prefix
    assert MODEL.tokenizer.decode_bytes(fill).startswith(prefix)
    assert passes == BUDGET - (MODEL.tokenizer.token_bytes(fill[0]) == prefix)


@settings(max_examples=25, deadline=None)
@given(cut=st.integers(40, 420), wrong=st.lists(st.integers(3, 60), max_size=8), right=st.integers(0, BUDGET))
def test_drafts_change_the_passes_and_never_the_fill(cut: int, wrong: list[int], right: int) -> None:
    layout = tiny_fim.laid_out(MODEL, tiny.CODE[:cut], tiny.CODE[cut:])
    layout = tiny_fim.unhealed(layout)
    (plain,), passes = run(layout, None)
    (drafted,), fewer = run(layout, Guesses([*plain[:right], *wrong]))
    assert drafted == plain == tiny_fim.greedy(MODEL, prompt(layout, 0), BUDGET)
    assert fewer <= passes


@pytest.mark.parametrize("seed", range(3))
def test_several_gaps_get_the_fills_that_they_get_one_after_the_other(seed: int) -> None:
    cuts = [60 + 37 * seed, 90 + 37 * seed, 200 + 11 * seed, 230 + 11 * seed, 330, 345]
    text = tiny.CODE
    layout = tiny_fim.laid_out(
        MODEL, text[: cuts[0]], text[cuts[1] : cuts[2]], text[cuts[3] : cuts[4]], text[cuts[5] :]
    )
    layout = tiny_fim.unhealed(layout)
    fills, passes = run(layout, None)
    expected: list[list[int]] = []
    alone = 0
    for gap in range(3):
        expected.append(tiny_fim.greedy(MODEL, prompt(layout, gap, tuple(expected)), BUDGET))
        alone += len(expected[-1]) + 1
    assert fills == expected
    assert passes <= alone


def test_a_candidate_begins_with_the_given_tokens() -> None:
    layout = tiny_fim.laid_out(MODEL, tiny.CODE[:200], tiny.CODE[230:])
    begin = MODEL.tokenizer.encode(" value = x")
    (fill,), _ = run(layout, None, candidate_begin=begin)
    assert fill[: len(begin)] == begin
    rest = tiny_fim.greedy(MODEL, [*prompt(layout, 0), *begin], BUDGET - len(begin))
    assert fill[len(begin) :] == rest
