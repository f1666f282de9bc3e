"""What the tests of Triton kernels share: they run on a GPU where there is one, else in Triton's interpreter."""

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


def same(one: torch.Tensor, other: torch.Tensor) -> None:
    """On a GPU to the last bit; the interpreter multiplies by numpy, whose sums depend on a row's place."""
    close = 0.0 if DEVICE == "cuda" else 1e-6 * float(other.abs().max())
    torch.testing.assert_close(one, other, atol=close, rtol=0)
