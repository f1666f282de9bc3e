"""Turns logits over slots into marginals: rules out impossible tokens and keeps the best candidates."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from lacuna_kernels import unmask
from lacuna_model.decode.canvas import Marginals

NUM_CANDIDATES = 12
# The logit of a token that is ruled out; finite, so that sums stay finite.
RULED_OUT = -1e4


def only(row: Tensor, allowed: Tensor) -> None:
    """Rule out all tokens of a row [V] except the ``allowed`` ids [N]."""
    kept = row[allowed].clone()
    row.fill_(RULED_OUT)
    row[allowed] = kept


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
    ids, best, _ = unmask(logp.masked_fill_(ruled, RULED_OUT), NUM_CANDIDATES)
    best += left[:, None]
    found = Marginals(ids.numpy(force=True), best.numpy(force=True), entropy.numpy(force=True))
    return _nucleus(found, sampling.top_p) if sampling.temperature > 0 and sampling.top_p < 1 else found


def _nucleus(seen: Marginals, top_p: float) -> Marginals:
    """The candidates up to the first with which they have the probability ``top_p``, and the entropy of these."""
    probabilities = np.exp(seen.logp)
    kept = np.cumsum(probabilities, axis=1) - probabilities <= top_p
    total = (probabilities * kept).sum(1, keepdims=True)
    share = np.where(kept, probabilities / total, 1.0)
    logp = np.where(kept, np.log(share), RULED_OUT).astype(np.float32)
    return Marginals(seen.ids, logp, -(share * np.log(share)).sum(1).astype(np.float32))
