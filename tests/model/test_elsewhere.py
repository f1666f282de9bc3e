"""A model on a second device: every tensor that meets its tensors is made on that device."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from msgspec.structs import replace as replace_fields
from torch import Tensor

from lacuna_kernels import gpu
from lacuna_model.core.params import (
    AnswerChat,
    ChatMessage,
    DecodeOptions,
    EditLines,
    FillGaps,
    FollowChanges,
    InfillRequest,
    InfillResult,
    PastChange,
    ReadContext,
    Region,
)
from lacuna_model.engine import Engine
from lacuna_model.fim import passes
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.network.gpu_layers import cuda_graph
from lacuna_model.network.linear import MASKS, GpuLinear

from . import tiny, tiny_masks
from .elsewhere import ELSEWHERE, LEAVING, Elsewhere
from .fim import tiny_fim
from .started import loaded as model

CPU = torch.device("cpu")
Made = Callable[..., LoadedFim]
OPTIONS = [
    DecodeOptions(syntax=False),
    DecodeOptions(syntax=False, temperature=0.7, prior=False),
]


def with_own_masks(device: torch.device, dtype: torch.dtype = torch.float32, seed: int = 0) -> LoadedFim:
    """The tiny model with mask rows."""
    loaded = model(device, dtype, seed=seed)
    network = loaded.layers.with_additions(MASKS, *tiny_masks.rows(tiny_fim.CONFIG, device=device))
    return replace_with(loaded, transformer=network)


def with_smaller(device: torch.device, dtype: torch.dtype = torch.float32) -> LoadedFim:
    """The tiny model with another one that drafts, without mask rows."""
    return replace_with(model(device, dtype), smaller=model(device, dtype, seed=1))


def with_masks(device: torch.device, dtype: torch.dtype = torch.float32) -> LoadedFim:
    """The tiny model with another one that drafts by mask rows."""
    return replace_with(model(device, dtype), smaller=with_own_masks(device, dtype, seed=1))


def replace_with(loaded: LoadedFim, **fields: object) -> LoadedFim:
    changed = replace(loaded, **fields)  # type: ignore[arg-type]
    vars(changed)["chat"] = loaded.chat
    return changed


def fill(loaded: LoadedFim, options: DecodeOptions) -> list[InfillResult]:
    """The results of requests: two gaps, the first within a word; four candidates; a text that moved a line.

    The last one is of two gaps whose context was read ahead.
    """
    engine, text = Engine(loaded), tiny.CODE
    begun = text.index("turn math") + 2
    gaps = (Region(begun, begun + 5, max_tokens=9), Region(150, 163, max_tokens=8))
    moved = "x = 1\n" + text
    return [
        engine.fill(InfillRequest(text, gaps, options=options)),
        engine.fill(InfillRequest(text, gaps[:1], FillGaps(4), options=options)),
        engine.fill(InfillRequest(moved, (Region(begun + 6, begun + 9, max_tokens=9),), options=options)),
        engine.fill(ahead(InfillRequest(text, gaps, path="b.py", options=options))),
        engine.fill(InfillRequest(text, gaps, path="b.py", options=options)),
    ]


def others(loaded: LoadedFim, options: DecodeOptions) -> list[InfillResult]:
    """The results of lines rewritten by an instruction and after a change, and of a chat."""
    engine, text = Engine(loaded), tiny.CODE
    first, last = text.index("    value = 0"), text.index("    for x in")
    lines = (Region(first, last, max_tokens=8),)
    edits = (EditLines("one"), FollowChanges((PastChange("c.py", "value = 1\n", "total = 1\n"),)))
    chat = (ChatMessage("user", "x"),)
    return [
        *(engine.fill(InfillRequest(text, lines, task, path="c.py", options=options)) for task in edits),
        engine.fill(InfillRequest("", (Region(0, 0, max_tokens=8),), task=AnswerChat(chat), options=options)),
    ]


def ahead(request: InfillRequest) -> InfillRequest:
    """The request that only encodes another one's context."""
    return replace_fields(request, task=ReadContext())


@pytest.mark.parametrize(
    ("made", "options"),
    [*zip([model, with_own_masks, with_smaller, with_masks], [*OPTIONS, *OPTIONS], strict=True)],
)
def test_a_fill_mixes_no_devices_and_equals_that_of_the_cpu(made: Made, options: DecodeOptions) -> None:
    with Elsewhere():
        loaded = made(ELSEWHERE)
        there = [*fill(loaded, options), *others(loaded, options)]
    loaded = made(CPU)
    here = [*fill(loaded, options), *others(loaded, options)]
    assert [(found.status, found.fills) for found in there] == [(found.status, found.fills) for found in here]
    if made is model:  # how much is drafted depends on what passes take
        assert [found.stats.nfe for found in there] == [found.stats.nfe for found in here]


class Copies(Elsewhere):
    """Counts the copies from the device, for each of which a host waits until the device has done its work."""

    count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func in LEAVING and getattr(args[0], "is_elsewhere", False)
        return super().__torch_function__(func, types, args, kwargs)


def test_a_pass_is_copied_from_the_device_once() -> None:
    request = InfillRequest(tiny.CODE, (Region(60, 63, max_tokens=9), Region(150, 163, max_tokens=8)), FillGaps(2))
    request = replace_fields(request, options=OPTIONS[0])
    with Copies() as copies:
        found = Engine(model(ELSEWHERE)).fill(request)
        assert found.stats.nfe > 3
    assert copies.count == found.stats.nfe + 1  # the engine waits for the only piece of the context, too


def test_a_pass_is_timed_until_its_outputs_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device works for 50 ms after the call that starts a pass has returned; the copy waits for that."""
    now = 0.0

    class Slow(Elsewhere):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal now
            now += 0.05 * (func is Tensor.numpy)
            return super().__torch_function__(func, types, args, kwargs)

    monkeypatch.setattr(passes, "perf_counter", lambda: now)
    with Slow():
        loaded = model(ELSEWHERE)
        Engine(loaded).fill(InfillRequest(tiny.CODE, (Region(60, 63, max_tokens=4),), options=OPTIONS[0]))
    assert loaded.costs.ms(1) == pytest.approx(50.0)


# Interpreted, a pass of more layers takes long.
LEAST = replace_fields(tiny_fim.CONFIG, num_layers=1, hidden_size=16, intermediate_size=24, num_heads=2, num_kv_heads=1)


def test_the_kernels_for_gpus_give_the_same_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    """With recorded graphs; where there is no GPU, a graph is a repeated call, and Triton is interpreted."""
    pytest.importorskip("triton")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    request = InfillRequest(tiny.CODE[:40], (Region(18, 21, min_tokens=2, max_tokens=2),), options=OPTIONS[0])
    expected = Engine(model(CPU, torch.bfloat16, config=LEAST)).fill(request)
    if device.type == "cpu":
        monkeypatch.setattr(gpu, "reads", lambda *tensors: True)
        monkeypatch.setattr(sys.modules["lacuna_kernels.operations"], "_multiplies", lambda device, dtype: False)
    loaded = model(device, torch.bfloat16, config=LEAST)
    graphed = loaded.transformer.on_gpu(cuda_graph if device.type == "cuda" else lambda run: run)
    assert Engine(replace_with(loaded, transformer=graphed)).fill(request).fills == expected.fills
    assert graphed._graphs._kept


@pytest.fixture
def plain_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The form of linears and layers that a GPU has, on the kernels' torch references where there is no GPU."""
    if not torch.cuda.is_available():
        monkeypatch.setattr(gpu, "reads", lambda *tensors: True)
        monkeypatch.setattr(gpu, "triton_failure", lambda: "pretended")


@pytest.mark.usefixtures("plain_kernels")
def test_the_layers_for_gpus_mix_no_devices_whatever_drafts() -> None:
    gaps = (Region(60, 63, max_tokens=5), Region(150, 163, max_tokens=4))
    with Elsewhere():
        made = [one(ELSEWHERE, torch.bfloat16) for one in (model, with_smaller, with_masks)]
        assert {type(loaded.transformer.head) for loaded in made} == {GpuLinear}
        for loaded in made:
            Engine(loaded).fill(InfillRequest(tiny.CODE[:200], gaps, options=OPTIONS[0]))


@cache
def without_drafts(device: torch.device) -> list[InfillResult]:
    loaded, greedy = model(device, torch.bfloat16), OPTIONS[0]
    return [*fill(loaded, greedy), *others(loaded, greedy)]


@pytest.mark.usefixtures("plain_kernels")
@pytest.mark.parametrize("made", [with_own_masks, with_smaller, with_masks])
def test_the_layers_for_gpus_give_the_same_fills_whatever_drafts(made: Made) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    greedy, sampled = OPTIONS
    loaded = made(device, torch.bfloat16)
    assert {found.status for found in fill(loaded, sampled)} == {"ok"}
    plain, drafted = without_drafts(device), [*fill(loaded, greedy), *others(loaded, greedy)]
    assert [(found.status, found.fills) for found in drafted] == [(found.status, found.fills) for found in plain]
