"""A fill is what the model writes greedily left to right, whatever was drafted. Gaps are filled in order."""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model import tiny

from lacuna_model.core.constraint import Constraint, Unconstrained
from lacuna_model.core.context import Layout, finished
from lacuna_model.decode.denoise import denoise
from lacuna_model.decode.fill import Fill, Key
from lacuna_model.decode.sampling import only
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.costs import AcceptanceRates, DraftedToken, PassCosts
from lacuna_model.fim.drafts import Drafts, WrittenFill
from lacuna_model.fim.passes import SharedPasses
from lacuna_model.fim.reading import FillInPass, FimReader
from lacuna_model.fim.track import EndRule

from . import tiny_fim
from .test_context import prompt

MODEL = tiny_fim.loaded()
BUDGET = 14


class Guesses:
    """A fake source of drafts: it drafts the rest of the first guess that begins with the tokens written so far."""

    def __init__(self, *guesses: Sequence[int]) -> None:
        self._guesses = guesses

    def draft(self, key: Key, fill: WrittenFill, rows: int) -> list[DraftedToken]:
        written = list(fill.written)
        first = self._guesses[0] if self._guesses else []
        fitting = (list(guess[len(written) :]) for guess in self._guesses if list(guess[: len(written)]) == written)
        return [DraftedToken(token, 0.5, "project") for token in next(fitting, list(first))[: max(fill.room, 0)]]

    def with_masks(self, drafted: list[DraftedToken], rows: int, most: int) -> tuple[list[DraftedToken], int]:
        return drafted, 0

    def preparing(self, fills: Mapping[Key, WrittenFill]) -> Generator[None, None, None]:
        """Do nothing: the guesses are given."""
        yield from ()

    def withdraw(self) -> None:
        """Do nothing: the guesses are given."""

    def filled(self, fills: Sequence[Sequence[int]]) -> None:
        """Do nothing: the guesses are given."""

    def verified(self, guesses: Sequence[DraftedToken], held: int) -> None:
        assert 0 <= held <= len(guesses)


def run(
    layout: Layout,
    drafts: Guesses | Drafts | None,
    candidate_begin: Sequence[int] = (),
    constraint: Constraint | None = None,
) -> tuple[list[list[int]], int]:
    """The tokens that fill every gap of a layout, and the number of passes."""
    context = FimContext(MODEL.tracks(), MODEL.tokenizer, MODEL.fim.suffix, near=10_000)
    context.update(layout)
    reader = FimReader(MODEL, context, cast(Drafts, drafts), layout)
    fills = [Fill(gap, BUDGET, int(bool(gap.prefix)), begin=candidate_begin) for gap in layout.gaps]
    constraints, tokens = [constraint or Unconstrained(MODEL.tokenizer)], MODEL.tokenizer
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


def test_a_right_draft_is_verified_in_one_pass() -> None:
    layout = tiny_fim.laid_out(MODEL, tiny.CODE[:200], tiny.CODE[230:])
    (plain,), passes = run(layout, None)
    assert passes >= len(plain) - 1 > 6
    assert run(layout, Guesses(plain)) == ([plain], 1)


@pytest.fixture(params=[False, True])
def either_device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU, where gaps that wait are not written ahead, and a device beside it, where they are."""
    monkeypatch.setattr(SharedPasses, "writes_ahead", request.param)


@pytest.mark.usefixtures("either_device")
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


def scripted(monkeypatch: pytest.MonkeyPatch, text: Callable[[FillInPass], Sequence[int]]) -> None:
    """Makes the model write the ``text`` for a part, and then the end."""

    def written(self: FimReader, part: FillInPass) -> list[EndRule]:
        coming = text(part)[len(part.known) : len(part.known) + len(part.draft) + 1]
        tokens = [*coming, *[MODEL.tokenizer.eog_id] * (len(part.draft) + 1 - len(coming))]
        return [EndRule(narrow=partial(only, allowed=torch.tensor([token]))) for token in tokens]

    monkeypatch.setattr(FimReader, "_rules", written)


def two_gaps() -> tuple[Layout, Drafts]:
    layout = tiny_fim.unhealed(tiny_fim.laid_out(MODEL, tiny.CODE[:100], tiny.CODE[120:200], tiny.CODE[220:]))
    return layout, Drafts(layout, (), PassCosts(), AcceptanceRates(), MODEL.tokenizer.special_ids)


@pytest.mark.parametrize("changed", [(), (3,), (0, 9)])
def test_what_was_written_ahead_drafts_the_gap_after_the_one_that_it_waited_for(
    changed: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second gap's fill has other tokens at some places than what is written ahead. Each costs a pass or two."""
    monkeypatch.setattr(SharedPasses, "writes_ahead", True)
    first, ahead = list(range(20, 32)), list(range(40, 52))
    fill = [7 if place in changed else token for place, token in enumerate(ahead)]
    scripted(monkeypatch, lambda part: [first, ahead if part.waits else fill][part.fill.gap.index])
    fills, passes = run(*two_gaps())
    assert fills == [first, fill]
    assert passes <= len(first) + 1 + 1 + 2 * len(changed)


@pytest.mark.usefixtures("either_device")
@pytest.mark.parametrize("first", [0, 1, 5])
@pytest.mark.parametrize("second", [0, 1, 5])
def test_a_gap_written_ahead_to_its_end_is_read_again(first: int, second: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the gap before it is left empty, so that its prompt stays the same, and where nothing is written."""
    texts = [list(range(20, 20 + first)), list(range(40, 40 + second))]
    scripted(monkeypatch, lambda part: texts[part.fill.gap.index])
    fills, _ = run(*two_gaps())
    assert fills == texts


def test_a_candidate_begins_with_the_given_tokens() -> None:
    layout = tiny_fim.laid_out(MODEL, tiny.CODE[:200], tiny.CODE[230:])
    begin = MODEL.tokenizer.encode(" value = x")
    (fill,), _ = run(layout, None, candidate_begin=begin)
    assert fill[: len(begin)] == begin
    rest = tiny_fim.greedy(MODEL, [*prompt(layout, 0), *begin], BUDGET - len(begin))
    assert fill[len(begin) :] == rest
