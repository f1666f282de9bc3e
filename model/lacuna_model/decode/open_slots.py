"""Marginals of slots: made of logits, without impossible tokens, and put together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

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


def put_first(found: Marginals, slot: int, token: int) -> None:
    """Move ``token`` to the front of a slot's candidates."""
    others = [i for i in range(found.ids.shape[1]) if found.ids[slot, i] != token]
    ranks = np.flatnonzero(found.ids[slot] == token)
    log_prob = found.logp[slot, ranks[0]] if len(ranks) else found.logp[slot].min()
    kept = others[: found.ids.shape[1] - 1]
    found.ids[slot] = [token, *found.ids[slot, kept]]
    found.logp[slot] = [log_prob, *found.logp[slot, kept]]


@lru_cache(maxsize=1024)
def sure(token: int) -> Marginals:
    """The marginals of a committed slot: its token with probability 1. They are shared, and must not be changed."""
    ids = np.zeros((1, NUM_CANDIDATES), dtype=np.int64)
    logp = np.full((1, NUM_CANDIDATES), RULED_OUT, dtype=np.float32)
    ids[0, 0], logp[0, 0] = token, 0.0
    return Marginals(ids, logp, np.zeros(1, dtype=np.float32))


def slots(found: Marginals) -> list[Marginals]:
    """The marginals of each slot by itself."""
    return [found.part(slot, slot + 1) for slot in range(len(found.ids))]


def joined(parts: Sequence[Marginals]) -> Marginals:
    """The marginals of several runs of slots, as exact as the last one."""
    return replace(
        parts[-1],
        ids=np.concatenate([part.ids for part in parts]),
        logp=np.concatenate([part.logp for part in parts]),
        entropy=np.concatenate([part.entropy for part in parts]),
    )


def _nucleus(seen: Marginals, top_p: float) -> Marginals:
    """The candidates up to the first with which they have the probability ``top_p``, and the entropy of these."""
    probabilities = np.exp(seen.logp)
    kept = np.cumsum(probabilities, axis=1) - probabilities <= top_p
    total = (probabilities * kept).sum(1, keepdims=True)
    share = np.where(kept, probabilities / total, 1.0)
    logp = np.where(kept, np.log(share), RULED_OUT).astype(np.float32)
    return Marginals(seen.ids, logp, -(share * np.log(share)).sum(1).astype(np.float32))
