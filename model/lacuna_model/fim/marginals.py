"""Marginals of single slots and of runs of slots, put together."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from lacuna_model.decode.canvas import Marginals
from lacuna_model.decode.open_slots import NUM_CANDIDATES, RULED_OUT


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
