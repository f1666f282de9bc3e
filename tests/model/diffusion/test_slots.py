import numpy as np
import torch

from lacuna_model.decode.sampling import RULED_OUT
from lacuna_model.diffusion.slots import Sampling, summary


def rows() -> torch.Tensor:
    return torch.randn((3, 40), generator=torch.Generator().manual_seed(0)) * 3


def nothing() -> torch.Tensor:
    return torch.zeros((3, 40), dtype=torch.bool)


def test_tokens_are_drawn_from_the_nucleus_of_the_sharper_distribution() -> None:
    logits = rows()
    seen = summary(logits.clone(), nothing(), Sampling(0.5, 0.6))
    for row, ids, logp, entropy in zip((logits / 0.5).softmax(-1), seen.ids, seen.logp, seen.entropy, strict=True):
        ordered, order = row.sort(descending=True)
        count = int((ordered.cumsum(0) - ordered <= 0.6).sum())
        kept = ordered[:count] / ordered[:count].sum()
        assert ids[:count].tolist() == order[:count].tolist()
        np.testing.assert_allclose(np.exp(logp[:count]), kept.numpy(), atol=1e-5)
        assert (logp[count:] == RULED_OUT).all()
        np.testing.assert_allclose(entropy, -(kept * kept.log()).sum().item(), atol=1e-5)
