import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lacuna_kernels import likeliest, reference, unmask


@pytest.mark.parametrize(
    ("rows", "vocab", "num_candidates"), [(1, 5, 5), (16, 301, 12), (3, 49152, 1)], ids=["R1-V5-C5", "R16-V301-C12",
    "R3-V49152-C1"],
)  # fmt: skip
def test_equals_a_plain_softmax(rows: int, vocab: int, num_candidates: int) -> None:
    logits = 5 * torch.randn((rows, vocab), generator=torch.Generator().manual_seed(0))
    ids, logp = unmask(logits, num_candidates)
    probabilities = logits.double().softmax(-1)
    best = probabilities.sort(-1, descending=True)
    assert torch.equal(ids, best.indices[:, :num_candidates])
    torch.testing.assert_close(logp.double(), best.values[:, :num_candidates].log(), atol=1e-5, rtol=1e-5)
    for fast, truth in zip((ids, logp), reference.unmask(logits, num_candidates), strict=True):
        torch.testing.assert_close(fast, truth, atol=1e-4, rtol=1e-4)


@given(st.integers(1, 3), st.integers(1, 400), st.integers(0, 9), st.integers(2, 40))
def test_the_likeliest_token_is_the_first_of_the_best(rows: int, vocab: int, seed: int, values: int) -> None:
    """Few values, so that several tokens are as good."""
    logits = torch.randint(values, (rows, vocab), generator=torch.Generator().manual_seed(seed)) - 20.0
    assert torch.equal(likeliest(logits), logits.argmax(-1))
    logits[:, vocab // 2] = float("-inf")
    assert torch.equal(likeliest(logits), logits.argmax(-1))
