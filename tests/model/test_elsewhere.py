"""A model on a device of its own: whatever meets its tensors is made there."""

import pytest
import torch

from lacuna_kernels import gpu
from lacuna_model.adapter import merge_adapter
from lacuna_model.assembly import build_transformer, fuse, narrow
from lacuna_model.context import lay_out
from lacuna_model.engine import Engine
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.params import DecodeOptions, InfillRequest, InfillResult, Region
from lacuna_model.prefixes import PrefixTable
from lacuna_model.tokenizer import Tokenizer

from . import tiny
from .elsewhere import ELSEWHERE, Elsewhere, Mismatch, placed

OPTIONS = [
    DecodeOptions(syntax=False),
    DecodeOptions(syntax=False, guidance=0.0),
    DecodeOptions(syntax=False, temperature=0.7, prior=False),
]


def model(device: torch.device, dtype: torch.dtype = torch.float32) -> LoadedModel:
    """The tiny model as the loader would build it there."""
    base, learnt, tokenizer = fuse(tiny.state(), tiny.CONFIG), tiny.adapter(), Tokenizer(tiny.VOCABULARY)
    sides = [base, merge_adapter(base, learnt)]
    if dtype is torch.bfloat16:
        sides = [narrow(side) for side in sides]
    if device == ELSEWHERE:
        sides, learnt = placed(sides), placed(learnt)
    else:
        sides = [{name: tensor.to(device) for name, tensor in side.items()} for side in sides]
    return LoadedModel(
        name="tiny",
        config=tiny.CONFIG,
        tokenizer=tokenizer,
        base=build_transformer(tiny.CONFIG, sides[0]),
        canvas=build_transformer(tiny.CONFIG, sides[1]),
        mask_embedding=learnt["mask_embedding"].to(device),
        prefixes=PrefixTable(tokenizer, device),
        cache_dtype=dtype,
    )


def fill(loaded: LoadedModel, options: DecodeOptions) -> list[InfillResult]:
    """Fills of two gaps, one after a word begun and one with candidates, in a text whose context then moves."""
    engine, text = Engine(loaded), tiny.CODE
    begun = text.index("turn math") + 2
    gaps = (Region(begun, begun + 5, max_tokens=9), Region(150, 163, max_tokens=8))
    moved = "x = 1\n" + text
    return [
        engine.fill(InfillRequest(text, gaps, options=options)),
        engine.fill(InfillRequest(text, gaps[:1], candidates=4, options=options)),
        engine.fill(InfillRequest(moved, (Region(begun + 6, begun + 9, max_tokens=9),), options=options)),
    ]


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("options", OPTIONS, ids=["guided", "unguided", "sampled"])
def test_a_fill_mixes_no_devices_and_is_the_same(options: DecodeOptions) -> None:
    with Elsewhere():
        there = fill(model(ELSEWHERE), options)
    assert [found.fills for found in there] == [found.fills for found in fill(model(torch.device("cpu")), options)]


def test_the_pretended_device_minds() -> None:
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


def test_bfloat16_goes_the_same_way_and_stays_close_to_float32() -> None:
    exact, narrowed = (model(torch.device("cpu"), dtype) for dtype in (torch.float32, torch.bfloat16))
    layout = lay_out((tiny.CODE[:200], tiny.CODE[205:]), exact.tokenizer, reserve=lambda _: 64, hole=64)
    for options in OPTIONS:
        assert {found.status for found in fill(narrowed, options)} == {"ok"}
    drafts = []
    for loaded in (exact, narrowed):
        cache = ContextCache(loaded.base, dtype=loaded.cache_dtype)
        cache.update(layout)
        canvases = tiny.canvases(layout)
        for canvas in canvases:
            canvas.open_block()
        with torch.inference_mode():
            reader = tiny.reader(loaded, cache, layout, guidance=0.5)
            drafts.append(torch.cat([*reader.draft(canvases), *reader.verify(canvases, [[3, 4, 5]])]))
    expected, got = drafts
    assert got.dtype is torch.float32
    assert (got - expected).norm() / expected.norm() < 0.02


@pytest.mark.usefixtures("loops")
def test_the_kernels_of_a_gpu_fill_alike(monkeypatch: pytest.MonkeyPatch) -> None:
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
