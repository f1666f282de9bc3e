import pytest
import torch

from lacuna_kernels import attention, empty_keys, fold_mask, reference

SHAPES = [(1, 1, 1, 1, 1, 8), (1, 9, 3, 17, 17, 64), (2, 6, 2, 17, 300, 16), (1, 6, 6, 5, 33, 8), (3, 8, 1, 2, 64, 32)]


def shape_id(shape: tuple[int, ...]) -> str:
    return "-".join(f"{name}{size}" for name, size in zip("BHGRKD", shape, strict=True))


@pytest.mark.parametrize("masked", ["open", "masked", "masked-per-batch"])
@pytest.mark.parametrize("shape", SHAPES, ids=shape_id)
def test_equals_the_reference(shape: tuple[int, ...], masked: str) -> None:
    batch, heads, groups, rows, keys, width = shape
    generator = torch.Generator().manual_seed(0)
    query = torch.randn((batch, heads, rows, width), generator=generator)
    key, value = torch.randn((2, batch, groups, keys, width), generator=generator)
    mask = None
    if masked != "open":
        size = (batch, 1, rows, keys) if masked == "masked-per-batch" else (rows, keys)
        mask = torch.rand(size, generator=generator) < 0.5
        mask[..., 0] = True  # a row that sees nothing has no softmax
    folded = None if mask is None else fold_mask(mask, heads // groups, query.dtype)
    got = attention(query, key, value, folded)
    torch.testing.assert_close(got, reference.attention(query, key, value, mask), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_memory_layout_of_keys_does_not_change_the_result(dtype: torch.dtype) -> None:
    query, key, value = torch.randn((3, 1, 2, 40, 8), generator=torch.Generator().manual_seed(0)).to(dtype)
    mask = fold_mask(torch.ones((40, 40), dtype=torch.bool).tril(), 1, dtype)
    laid_out = empty_keys(key.shape, key.device, dtype)
    assert laid_out.shape == key.shape
    laid_out.copy_(key)
    got = attention(query, laid_out, value, mask)
    torch.testing.assert_close(got, attention(query, key, value, mask), atol=0.02, rtol=0.02)
