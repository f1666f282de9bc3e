"""The public functions choose between a kernel for GPUs and the plain form in torch."""

import sys
from types import ModuleType

import pytest
import torch
from torch import Tensor

import lacuna_kernels
from lacuna_kernels import attention, fold_mask, gpu, reference


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every tensor count as a tensor on a GPU."""
    monkeypatch.setattr(gpu, "reads", lambda *tensors: True)


@pytest.fixture
def flash(monkeypatch: pytest.MonkeyPatch) -> list[tuple[torch.Size, ...]]:
    """Installs a fake flash-attn with the layout [B, R, H, D]. Returns the shapes that it was called with."""
    calls: list[tuple[torch.Size, ...]] = []

    def flash_attn_func(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        assert {part.stride(-1) for part in (q, k, v)} == {1}  # flash-attn's only demand on strides
        calls.append((q.shape, k.shape, v.shape))
        return reference.attention(*(part.transpose(1, 2) for part in (q, k, v))).transpose(1, 2)

    module = ModuleType("flash_attn")
    module.flash_attn_func = flash_attn_func  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flash_attn", module)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(gpu, "flash_attention", gpu.flash_attention.__wrapped__)
    return calls


@pytest.mark.usefixtures("on_gpu")
def test_flash_attn_computes_open_attention_in_half_precision_and_torch_the_rest(flash: list[object]) -> None:
    generator = torch.Generator().manual_seed(0)
    query = torch.randn((1, 6, 5, 16), generator=generator)
    key, value = torch.randn((2, 1, 2, 40, 16), generator=generator)
    torch.testing.assert_close(attention(query, key, value), reference.attention(query, key, value))
    mask = torch.ones((5, 40), dtype=torch.bool).tril(3)
    narrow = [part.bfloat16() for part in (query, key, value)]
    got = attention(*narrow, fold_mask(mask, 3, torch.bfloat16))
    torch.testing.assert_close(got.float(), reference.attention(query, key, value, mask), atol=0.05, rtol=0.05)
    wide = torch.randn((1, 1, 2, 264), generator=generator).bfloat16()
    attention(wide, wide, wide)
    assert flash == []
    torch.testing.assert_close(attention(*narrow), reference.attention(*narrow))
    assert flash == [((1, 5, 6, 16), (1, 40, 2, 16), (1, 40, 2, 16))]


def test_flash_attn_is_not_used_where_old_or_missing(flash: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu.flash_attention() is not None
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (7, 5))
    assert gpu.flash_attention() is None
    monkeypatch.setitem(sys.modules, "flash_attn", None)
    assert gpu.flash_attention() is None


@pytest.mark.usefixtures("on_gpu")
@pytest.mark.parametrize("name", ["rms_norm", "add_rms_norm", "unmask"])
def test_public_functions_call_the_kernels_for_gpus(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    assert gpu.triton_failure() == ""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn((3, 8), generator=torch.Generator().manual_seed(0)).to(device)
    arguments = {"rms_norm": (x, x[0], 1e-5), "add_rms_norm": (x, x, x[0], 1e-5), "unmask": (x, 4)}[name]
    expected = getattr(reference, name)(*arguments)
    monkeypatch.setattr(reference, name, None)  # a call of the reference now fails
    got = getattr(lacuna_kernels, name)(*arguments)
    pairs = [(got, expected)] if isinstance(got, Tensor) else zip(got, expected, strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one, other)
