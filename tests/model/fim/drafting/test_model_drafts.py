"""Drafts of the drafter: they change the number of passes, never the fill; the likelier of two sources is drafted."""

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from msgspec.structs import replace as replace_fields
from tests.model import tiny, tiny_drafter
from tests.model.fim import tiny_fim
from torch import Tensor

from lacuna_model.backends.readers import load
from lacuna_model.core.context import Layout
from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.drafting.acceptance_rates import AcceptanceRates, DraftedToken
from lacuna_model.fim.drafting.costs import PassCosts
from lacuna_model.fim.drafting.drafts import DrafterStart, Drafts
from lacuna_model.network.drafter import Drafter
from lacuna_model.prior.index import IndexedDocuments, Segment
from lacuna_model.prior.suffix_array import token_type

MODEL = tiny_fim.loaded()
ENCODE = MODEL.tokenizer.encode
SPECIALS = MODEL.tokenizer.special_ids
TEXT = "def area(width, height):\n    return width * height\n\nprint("


class Certain:
    """A drafter that continues every token as a text does, with the same probability in each slot."""

    def __init__(self, tokens: Sequence[int], probability: float = 0.99) -> None:
        self._following = dict(itertools.pairwise(tokens))
        self._rest = (1 - probability) / (MODEL.config.vocab_size - 1)
        self._probability = probability
        self.vocabulary = torch.arange(MODEL.config.vocab_size)
        self.steps = 0

    def step(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        self.steps += 1
        return tokens[:, None].float()

    def logits(self, hidden: Tensor) -> Tensor:
        shares = torch.full((1, MODEL.config.vocab_size), self._rest)
        shares[0, self._following.get(int(hidden), 0)] = self._probability
        return shares.log()


def drafts(
    layout: Layout, drafter: Certain | None, known: Sequence[Segment] = (), costs: PassCosts | None = None
) -> Drafts:
    return Drafts(layout, known, cast(Drafter | None, drafter), costs or PassCosts(), AcceptanceRates(), SPECIALS)


def start(written: Sequence[int]) -> DrafterStart:
    return DrafterStart(torch.zeros(MODEL.config.hidden_size), written)


def tokens_of(guesses: Sequence[DraftedToken]) -> list[int]:
    return [guess.token for guess in guesses]


def test_the_drafter_continues_what_was_written() -> None:
    text = list(dict.fromkeys(ENCODE(TEXT)))
    layout = tiny_fim.laid_out(MODEL, "x = 1\n", "")
    found = drafts(layout, Certain(text)).draft((0, 0), text[:1], 4, start(text[:1]), 1)
    assert tokens_of(found) == text[1:5]
    assert {guess.source for guess in found} == {"drafter"}


def test_nothing_is_drafted_before_a_state_is_known() -> None:
    text = list(dict.fromkeys(ENCODE(TEXT)))
    layout = tiny_fim.laid_out(MODEL, "x = 1\n", "")
    assert drafts(layout, Certain(text)).draft((0, 0), text[:1], 4, None, 1) == []


def test_the_likelier_source_is_drafted() -> None:
    copied = ENCODE("total = total + value\n" * 3)
    known = [Segment(IndexedDocuments.index({"a": copied}, token_type(MODEL.tokenizer.vocab_size)))]
    layout = tiny_fim.laid_out(MODEL, "", "")
    written = copied[:6]
    other = Certain([written[-1], 5, 6, 7], probability=0.01)
    assert {
        guess.source for guess in drafts(layout, other, known).draft((0, 0), written, 3, start(written[-1:]), 1)
    } == {"project"}
    sure = Certain([written[-1], 5, 6, 7], probability=0.99)
    unlike = [Segment(IndexedDocuments.index({"a": ENCODE("x y z")}, token_type(MODEL.tokenizer.vocab_size)))]
    assert tokens_of(drafts(layout, sure, unlike).draft((0, 0), written, 3, start(written[-1:]), 1)) == [5, 6, 7]


def test_a_draft_ends_where_a_row_does_not_pay() -> None:
    costs = PassCosts()
    for _ in range(50):
        costs.saw_pass(1, 10.0)
        costs.saw_pass(2, 18.0)
    text = list(dict.fromkeys(ENCODE(TEXT)))
    layout = tiny_fim.laid_out(MODEL, "x = 1\n", "")
    unsure = Certain(text, probability=0.7)
    assert drafts(layout, unsure, costs=costs).draft((0, 0), text[:1], 6, start(text[:1]), 1) == []
    flat = PassCosts()
    for _ in range(50):
        flat.saw_pass(1, 1e4)  # so long that the drafter's own steps cost nothing, also on a busy machine
        flat.saw_pass(16, 1e4)
    assert len(drafts(layout, unsure, costs=flat).draft((0, 0), text[:1], 6, start(text[:1]), 1)) == 6


def test_drafts_that_did_not_hold_are_believed_less() -> None:
    rates = AcceptanceRates()
    before = rates.corrected(0.8, "drafter")
    for _ in range(30):
        rates.saw(DraftedToken(1, 0.8, "drafter"), 0, held=False)
    assert rates.corrected(0.8, "drafter") < before / 2
    assert rates.corrected(0.8, "project") == before


def test_verified_tokens_are_counted_up_to_the_first_wrong_one() -> None:
    text = list(dict.fromkeys(ENCODE(TEXT)))[:4]
    rates = AcceptanceRates()
    layout = tiny_fim.laid_out(MODEL, "x = 1\n", "")
    drafting = Drafts(layout, (), None, PassCosts(), rates, SPECIALS)
    guesses = [DraftedToken(token, 0.9, "drafter") for token in text]
    drafting.verified(guesses, 2)
    drafting.verified(guesses, 4)
    assert rates.asked == {0: 2, 1: 2, 2: 2, 3: 1}
    assert rates.right == {0: 2, 1: 2, 2: 1, 3: 1}


def request(text: str, *cuts: tuple[int, int], syntax: bool, drafter: bool) -> InfillRequest:
    regions = tuple(Region(first, last, max_tokens=14) for first, last in cuts)
    options = DecodeOptions(syntax=syntax, prior=False, drafter=drafter)
    return InfillRequest(text=text, regions=regions, path="a.py", options=options)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("syntax", [False, True])
def test_fills_do_not_depend_on_the_drafter(seed: int, syntax: bool) -> None:
    model = replace(tiny_fim.loaded(seed), drafter=tiny_drafter.random(seed, MODEL))
    cuts = [(40 + 9 * seed, 60 + 9 * seed), (200 + seed, 230 + seed)]
    for chosen in (cuts[:1], cuts):
        fills = {
            drafter: Engine(model).fill(request(tiny.CODE, *chosen, syntax=syntax, drafter=drafter)).fills
            for drafter in (False, True)
        }
        assert fills[True] == fills[False]


@pytest.mark.parametrize("temperature", [1.0, 4.0])
@pytest.mark.parametrize("syntax", [False, True])
def test_sampled_fills_do_not_depend_on_the_drafter(temperature: float, syntax: bool) -> None:
    """What was read behind a drafted token says nothing where another one is drawn."""
    model, cuts = tiny_fim.loaded(3), [(40, 60), (201, 231)]
    texts = [Engine(model).fill(request(tiny.CODE, cut, syntax=syntax, drafter=False)).fills[0] for cut in cuts]
    knowing = replace(model, drafter=cast(Drafter, Certain(ENCODE("".join(texts)))))
    for seed, chosen in itertools.product(range(6), (cuts[:1], cuts)):
        asked = (request(tiny.CODE, *chosen, syntax=syntax, drafter=drafter) for drafter in (False, True))
        plain, drafted = (
            Engine(knowing).fill(
                replace_fields(one, options=replace_fields(one.options, temperature=temperature, seed=seed))
            )
            for one in asked
        )
        assert drafted.fills == plain.fills


def test_a_drafter_that_knows_the_fill_saves_passes() -> None:
    cut = (40, 60)
    plain = Engine(MODEL).fill(request(tiny.CODE, cut, syntax=False, drafter=False))
    text = ENCODE(plain.fills[0])
    knowing = replace(MODEL, drafter=cast(Drafter, Certain(text)))
    drafted = Engine(knowing).fill(request(tiny.CODE, cut, syntax=False, drafter=True))
    assert drafted.fills == plain.fills
    assert drafted.stats.nfe < plain.stats.nfe


@pytest.mark.usefixtures("coder_path")
def test_the_real_model_fills_several_gaps_alike_with_and_without_drafts() -> None:
    real = replace(load("qwen2.5-coder-0.5b", threads=2), costs=tiny_fim.Paying())
    lines = Path(bisect.__file__).read_text().splitlines(keepends=True)[:80]
    statements = [number for number, line in enumerate(lines) if line.startswith("        ")]
    regions = []
    for number in statements[2::6][:3]:
        start = len("".join(lines[:number]).encode())
        regions.append(Region(start, start + len(lines[number].encode()) - 1, max_tokens=40))
    text = "".join(lines)
    plain, drafted = (
        Engine(real).fill(InfillRequest(text, tuple(regions), path="a.py", options=options))
        for options in (DecodeOptions(syntax=False, prior=False, drafter=False), DecodeOptions(syntax=False))
    )
    assert len(plain.fills) == 3
    assert drafted.fills == plain.fills
    assert drafted.stats.nfe < plain.stats.nfe
