import pytest
import torch

from lacuna_kernels import rms_norm


@pytest.mark.parametrize("eps", [1e-5, 1e-6])
@pytest.mark.parametrize("shape", [(1, 48), (2, 17, 576), (2, 3, 5, 8)], ids=["R1-D48", "B2-R17-D576", "B2-H3-R5-D8"])
def test_equals_torch(shape: tuple[int, ...], eps: float) -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight = 10 * torch.randn(shape, generator=generator), torch.randn(shape[-1], generator=generator)
    expected = torch.nn.functional.rms_norm(x, (shape[-1],), weight, eps)
    torch.testing.assert_close(rms_norm(x, weight, eps), expected, atol=1e-5, rtol=1e-5)
