"""What a pass says of slots: made of logits, without impossible tokens, and drawn."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import unmask
from lacuna_model.decode.sampling import NUM_CANDIDATES, RULED_OUT


@dataclass(frozen=True, slots=True)
class Marginals:
    """What a pass says of B slots: candidates [B, K] best first, log-probabilities [B, K], and entropy [B] (nats)."""

    ids: NDArray[np.int64]
    logp: NDArray[np.float32]
    entropy: NDArray[np.float32]

    def row(self, slot: int) -> "Marginals":
        """Those of one slot."""
        one = slice(slot, slot + 1)
        return Marginals(self.ids[one], self.logp[one], self.entropy[one])


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn: from the most probable ones that have the probability ``top_p`` together.

    ``temperature`` 0 takes the most probable token.
    """

    temperature: float = 0.0
    top_p: float = 1.0


GREEDY = Sampling()


def summary(logits: Tensor, ruled: Tensor, sampling: Sampling = GREEDY) -> Marginals:
    """The marginals of the rows ``logits`` [R, V], which are overwritten, without the tokens ``ruled`` out [R, V].

    Probabilities and entropies are those of all tokens, so that what is ruled out still counts as doubt.
    """
    if sampling.temperature > 0:
        logits /= sampling.temperature
    logp = logits.float().log_softmax(-1)
    probabilities = logp.exp()
    entropy = -(probabilities * logp).sum(-1)
    left = (1 - (probabilities * ruled).sum(-1)).clamp_min(1e-6).log()
    ids, best = unmask(logp.masked_fill_(ruled, RULED_OUT), NUM_CANDIDATES)
    best += left[:, None]
    found = Marginals(ids.numpy(force=True), best.numpy(force=True), entropy.numpy(force=True))
    return _nucleus(found, sampling.top_p) if sampling.temperature > 0 and sampling.top_p < 1 else found


@lru_cache(maxsize=1024)
def sure(token: int) -> Marginals:
    """The marginals of a known slot: its token with probability 1. They are shared, and must not be changed."""
    ids = np.zeros((1, NUM_CANDIDATES), dtype=np.int64)
    logp = np.full((1, NUM_CANDIDATES), RULED_OUT, dtype=np.float32)
    ids[0, 0], logp[0, 0] = token, 0.0
    return Marginals(ids, logp, np.zeros(1, dtype=np.float32))


def _nucleus(seen: Marginals, top_p: float) -> Marginals:
    """The candidates up to the first with which they have the probability ``top_p``, and the entropy of these."""
    probabilities = np.exp(seen.logp)
    kept = np.cumsum(probabilities, axis=1) - probabilities <= top_p
    total = (probabilities * kept).sum(1, keepdims=True)
    share = np.where(kept, probabilities / total, 1.0)
    logp = np.where(kept, np.log(share), RULED_OUT).astype(np.float32)
    return Marginals(seen.ids, logp, -(share * np.log(share)).sum(1).astype(np.float32))
