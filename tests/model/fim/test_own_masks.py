"""A model with mask rows drafts for itself: what they say changes the passes, never the fill."""

import bisect
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model import tiny_masks
from tests.model.fim import tiny_fim
from tests.model.fim.test_draft_model import read_ahead, request
from tests.model.fim.test_passes import alone, beside, said, turning
from tests.model.fim.test_passes import request as numbered
from torch import Tensor

from lacuna_kernels import native
from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.loading import rows_file
from lacuna_model.readers import load

MASKS = tiny_masks.SLOTS - 1


def masked(seed: int = 0) -> LoadedFim:
    return replace(tiny_masks.masked(tiny_fim.loaded(seed), seed), costs=tiny_fim.Free())


def always(token: int, model: LoadedFim, odds: float = 1e3) -> LoadedFim:
    """The model, if it said one token everywhere, in mask rows, too, so many logits above all others together."""
    head = model.transformer.head

    def says(x: Tensor) -> Tensor:
        logits = head(x)
        logits[..., token] = -torch.inf
        logits[..., token] = logits.logsumexp(-1) + odds
        return logits

    model.transformer.head = says
    return model


def test_a_draft_by_masks_that_holds_is_written_in_one_pass() -> None:
    token = tiny_fim.loaded().tokenizer.encode("x")[0]
    asked = request((40, 60))
    plain = Engine(always(token, tiny_fim.loaded())).fill(asked)
    drafted = read_ahead(Engine(always(token, masked())), asked)
    assert drafted.fills == plain.fills
    assert drafted.stats.nfe <= 2 + 14 // (1 + MASKS) < plain.stats.nfe / 2


def test_snapshots_show_the_draft_that_the_next_pass_verifies_and_the_masks_behind_it() -> None:
    token = tiny_fim.loaded().tokenizer.encode("x")[0]
    stream = Engine(always(token, masked())).stream(request((40, 60)))
    seen = [[(slot.state, slot.text) for slot in shown.slots[0]] for shown in stream if shown.step]
    states = [[state for state, _ in slots] for slots in seen]
    assert all(shown == sorted(shown, key=["committed", "draft", "mask"].index) for shown in states)
    assert states[1].count("draft") == states[1].count("mask") == MASKS
    before, after = seen[1], seen[2]
    drafted = [place for place, (state, _) in enumerate(before) if state == "draft"]
    assert [after[place] for place in drafted] == [("committed", before[place][1]) for place in drafted]


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedFim, LoadedFim]:
    """A tiny model in the kernels in C, without mask rows and with."""
    if not native.supported():
        pytest.skip("this CPU has none of the instructions")
    folder = tmp_path_factory.mktemp("kernels")
    kernels = native.build(folder)
    plain = replace(tiny_fim.loaded_in_c(kernels), costs=tiny_fim.Free())
    file = tiny_masks.write(folder / "a.masks.safetensors", tiny_fim.IN_C, rank=32)
    return plain, replace(plain, transformer=rows_file.read(file, plain.layers))


@settings(max_examples=10, deadline=None)
@given(order=st.lists(st.integers(0, 2), max_size=30))
def test_a_fill_is_the_same_bit_for_bit_with_masks_of_its_own_and_of_others_beside_it(
    in_c: tuple[LoadedFim, LoadedFim], order: list[int]
) -> None:
    plain, drafting = in_c
    asked = [numbered(number, gaps=1 + number % 2) for number in range(3)]
    found = beside(Engine(drafting), asked, turning(order), {})
    assert [said(one) for one in found] == [said(alone(plain, one)) for one in asked]


@pytest.mark.usefixtures("coder_path")
def test_the_real_model_fills_several_gaps_alike_with_and_without_drafts() -> None:
    real = replace(load("qwen2.5-coder-0.5b", threads=2), costs=tiny_fim.Paying())
    lines = Path(bisect.__file__).read_text().splitlines(keepends=True)[:50]
    statements = [number for number, line in enumerate(lines) if line.startswith("        ")]
    regions = []
    for number in statements[2::6][:2]:
        start = len("".join(lines[:number]).encode())
        regions.append(Region(start, start + len(lines[number].encode()) - 1, max_tokens=12))
    text = "".join(lines)
    plain, drafted = (
        Engine(real).fill(InfillRequest(text, tuple(regions), path="a.py", options=options))
        for options in (DecodeOptions(syntax=False, prior=False, drafter=False), DecodeOptions(syntax=False))
    )
    assert len(plain.fills) == 2
    assert drafted.fills == plain.fills
    assert drafted.stats.nfe < plain.stats.nfe
