"""A fill is what the model writes greedily left to right, whatever was drafted. Gaps are filled in order."""

from collections.abc import Sequence

import pytest
from tests.model import tiny

from lacuna_model.core.constraint import Constraint
from lacuna_model.core.context import Layout, finished
from lacuna_model.decode.denoise import denoise
from lacuna_model.decode.fill import Fill
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.costs import AcceptanceRates
from lacuna_model.fim.drafts import Drafts
from lacuna_model.fim.reading import FimReader

from . import tiny_fim
from .test_context import prompt

MODEL = tiny_fim.loaded()
BUDGET = 14


def run(layout: Layout, candidate_begin: Sequence[int] = ()) -> tuple[list[list[int]], int]:
    """The tokens that fill every gap of a layout, and the number of passes."""
    context = FimContext(MODEL.tracks(), MODEL.tokenizer, MODEL.fim, near=10_000)
    finished(context.updating(layout))
    drafts = Drafts(layout, (), MODEL.costs, AcceptanceRates(), MODEL.tokenizer.special_ids)
    reader = FimReader(MODEL, context, drafts, layout)
    fills = [Fill(gap, BUDGET, int(bool(gap.prefix)), begin=candidate_begin) for gap in layout.gaps]
    loop = denoise(reader, fills, [Constraint(MODEL.tokenizer)], MODEL.tokenizer, deadline=None)
    assert finished(loop).outcome == "ok"
    return [fill.tokens for fill in fills], reader.passes


def test_healed_text_that_is_written_again_as_one_token_costs_no_pass() -> None:
    """The prefix ends within a line. Its last token is written again in the pass that finds the next token."""
    layout = tiny_fim.laid_out(MODEL, tiny.CODE[:200], tiny.CODE[230:])
    prefix = layout.gaps[0].prefix
    (fill,), passes = run(layout)
    assert prefix
    assert MODEL.tokenizer.decode_bytes(fill).startswith(prefix)
    assert passes == BUDGET - (MODEL.tokenizer.token_bytes(fill[0]) == prefix)


@pytest.mark.parametrize("seed", range(3))
def test_several_gaps_get_the_fills_that_they_get_one_after_the_other(seed: int) -> None:
    cuts = [60 + 37 * seed, 90 + 37 * seed, 200 + 11 * seed, 230 + 11 * seed, 330, 345]
    text = tiny.CODE
    layout = tiny_fim.laid_out(
        MODEL, text[: cuts[0]], text[cuts[1] : cuts[2]], text[cuts[3] : cuts[4]], text[cuts[5] :]
    )
    layout = tiny_fim.unhealed(layout)
    fills, passes = run(layout)
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
    (fill,), _ = run(layout, begin)
    assert fill[: len(begin)] == begin
    rest = tiny_fim.greedy(MODEL, [*prompt(layout, 0), *begin], BUDGET - len(begin))
    assert fill[len(begin) :] == rest
