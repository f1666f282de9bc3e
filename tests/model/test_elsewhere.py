"""A model on a second device: every tensor that meets its tensors is made on that device."""

import pytest
import torch

from lacuna_kernels import gpu
from lacuna_model.core.params import DecodeOptions, InfillRequest, InfillResult, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.network.assembly import build_transformer, fuse, narrow
from lacuna_model.tokens.prefixes import PrefixTable
from lacuna_model.tokens.tokenizer import Tokenizer

from . import tiny
from .elsewhere import ELSEWHERE, Elsewhere, Mismatch, placed
from .fim import tiny_fim

OPTIONS = [
    DecodeOptions(syntax=False),
    DecodeOptions(syntax=False, temperature=0.7, prior=False),
]


def model(device: torch.device, dtype: torch.dtype = torch.float32) -> LoadedFim:
    """The tiny model on ``device``, as the loader would build it."""
    tensors, tokenizer = fuse(tiny.state(tiny_fim.CONFIG), tiny_fim.CONFIG), Tokenizer(tiny_fim.VOCABULARY)
    if dtype is torch.bfloat16:
        tensors = narrow(tensors)
    tensors = placed(tensors) if device == ELSEWHERE else {name: one.to(device) for name, one in tensors.items()}
    transformer = build_transformer(tiny_fim.CONFIG, tensors)
    prefixes = PrefixTable(tokenizer, device)
    return LoadedFim("tiny", tiny_fim.CONFIG, tokenizer, transformer, prefixes, tiny_fim.FIM, dtype)


def fill(loaded: LoadedFim, options: DecodeOptions) -> list[InfillResult]:
    """The results of three requests: two gaps, the first within a word; four candidates; a text that moved a line."""
    engine, text = Engine(loaded), tiny.CODE
    begun = text.index("turn math") + 2
    gaps = (Region(begun, begun + 5, max_tokens=9), Region(150, 163, max_tokens=8))
    moved = "x = 1\n" + text
    return [
        engine.fill(InfillRequest(text, gaps, options=options)),
        engine.fill(InfillRequest(text, gaps[:1], candidates=4, options=options)),
        engine.fill(InfillRequest(moved, (Region(begun + 6, begun + 9, max_tokens=9),), options=options)),
    ]


@pytest.mark.parametrize("options", OPTIONS, ids=["greedy", "sampled"])
def test_a_fill_mixes_no_devices_and_equals_that_of_the_cpu(options: DecodeOptions) -> None:
    with Elsewhere():
        there = fill(model(ELSEWHERE), options)
    assert [found.fills for found in there] == [found.fills for found in fill(model(torch.device("cpu")), options)]


def test_the_pretended_device_refuses_tensors_in_ordinary_memory() -> None:
    with Elsewhere():
        here, there = torch.ones(3), torch.ones(3, device=ELSEWHERE)
        assert (there + here.sum()).device == ELSEWHERE
        assert (there * 2)[torch.tensor([1])].device == here.to(there).device == ELSEWHERE
        with pytest.raises(Mismatch):
            there + here
        with pytest.raises(Mismatch):
            there.index_fill_(0, torch.tensor([1]), 0.0)
        with pytest.raises(Mismatch):
            (there + 1).numpy()
        assert there.numpy(force=True).sum() == 3


def test_a_model_in_bfloat16_fills_and_its_logits_stay_close_to_float32() -> None:
    exact, narrowed = (model(torch.device("cpu"), dtype) for dtype in (torch.float32, torch.bfloat16))
    ids = exact.tokenizer.encode(tiny.CODE)[:120]
    for options in OPTIONS:
        assert {found.status for found in fill(narrowed, options)} == {"ok"}
    expected, got = (tiny_fim.plain_logits(loaded, ids) for loaded in (exact, narrowed))
    assert got.dtype is torch.float32
    assert (got - expected).norm() / expected.norm() < 0.02


def test_the_kernels_for_gpus_give_the_same_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    request = InfillRequest(tiny.CODE[:160], (Region(60, 63, max_tokens=3),), options=OPTIONS[0])
    expected = Engine(model(torch.device("cpu"))).fill(request)
    if device.type == "cpu":  # where Triton is interpreted
        monkeypatch.setattr(gpu, "reads", lambda *tensors: True)
    assert Engine(model(device)).fill(request).fills == expected.fills


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_fills_in_bfloat16() -> None:
    for options in OPTIONS:
        assert {found.status for found in fill(model(torch.device("cuda"), torch.bfloat16), options)} == {"ok"}
