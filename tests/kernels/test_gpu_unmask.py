"""Unmask in Triton: on a GPU where there is one, else interpreted."""

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.kernels.on_gpu import DEVICE, random

pytest.importorskip("triton")

from lacuna_kernels import reference
from lacuna_kernels.gpu.unmask import BLOCK, unmask

# A failing example of many blocks takes minutes to shrink.
WITHOUT_SHRINKING = tuple(phase for phase in Phase if phase is not Phase.shrink)


def assert_like_the_reference(logits: torch.Tensor, count: int) -> None:
    ids, logp = unmask(logits, count)
    assert logp.dtype == torch.float32
    _, expected = reference.unmask(logits, count)
    torch.testing.assert_close(logp, expected, atol=1e-4, rtol=1e-5)
    # Of tokens with equal logits the reference may take any; the kernel takes those with the smaller ids.
    values = logits.float()
    best = torch.stack([row.sort(descending=True, stable=True).indices[:count] for row in values])
    assert torch.equal(ids, best)


@settings(max_examples=5, phases=WITHOUT_SHRINKING)
@given(
    st.integers(1, 64),
    st.integers(1, BLOCK + 500),
    st.integers(1, 13),
    st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
    st.sampled_from([0.0, 0.1, 5.0, 40.0]),
)
def test_equals_the_reference(rows: int, vocab: int, count: int, dtype: torch.dtype, scale: float) -> None:
    # In half precision many logits are equal; with a scale of 0 all are.
    assert_like_the_reference((scale * random(rows, vocab)).to(dtype), min(count, vocab))


def test_tokens_that_are_ruled_out_make_no_nan() -> None:
    for ruled_out in (-1e4, float("-inf")):
        logits = torch.full((2, BLOCK + 9), ruled_out, device=DEVICE)
        logits[0, 7], logits[1, 3], logits[1, BLOCK + 2] = 1.0, 2.0, 2.0
        ids, logp = unmask(logits, 3)
        assert ids.tolist() == [[7, 0, 1], [3, BLOCK + 2, 0]]
        torch.testing.assert_close(logp[1, :2].exp(), torch.full((2,), 0.5, device=DEVICE))
        assert not logp.isnan().any()
