"""Rows of logits: tokens that may begin there, and drawing at a temperature so that drafts change nothing."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_model.core.constraint import Run
from lacuna_model.tokenizer import Tokenizer

NUM_CANDIDATES = 12
# The logit of a token that is ruled out; finite, so that sums stay finite.
RULED_OUT = -1e4


def only(row: Tensor, allowed: Tensor) -> None:
    """Rule out all tokens of a row [V] except the ``allowed`` ids [N]."""
    kept = row[allowed].clone()
    row.fill_(RULED_OUT)
    row[allowed] = kept


def order(logp: NDArray[np.float32], temperature: float, noise: NDArray[np.float64]) -> NDArray[np.int64]:
    """The ranks [n, K] of candidates with log-probabilities [n, K]: the drawn token first, by Gumbel ``noise``."""
    return np.argsort(-(logp / temperature + noise), axis=1)


def drawn(run: Run, temperature: float, seed: int, key: Sequence[int], first: int, fixed: int = 0) -> Run:
    """A run whose tokens, but the first ``fixed`` ones, are drawn; it begins at place ``first`` of the fill ``key``.

    It ends with the first drawn token that is not the one that was read: what was read behind that says nothing.
    """
    ranks = order(run.logp, temperature, noise(seed, key, first, run.ids))
    ranks[:fixed] = np.arange(run.ids.shape[1])
    ids = np.take_along_axis(run.ids, ranks, axis=1)
    changed = np.flatnonzero(ids[:, 0] != run.ids[:, 0])
    stop = int(changed[0]) + 1 if len(changed) else len(ids)
    return Run(ids[:stop], np.take_along_axis(run.logp, ranks, axis=1)[:stop])


def noise(seed: int, key: Sequence[int], first: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Gumbel noise [n, K] of candidates: a function of the seed, the fill, the place and the token.

    So neither drafts, which have more places read in a pass, nor the order of candidates change what a seed draws. The
    hash is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
    """
    places = first + np.arange(len(ids))[:, None]
    mixed: NDArray[np.uint64] = np.zeros(1, dtype=np.uint64)
    for part in (seed, *key, places, ids):
        mixed = mixed + np.asarray(part).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    uniform = ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) / 2**53
    return -np.log(-np.log(uniform))


CPU = torch.device("cpu")


class PrefixTable:
    """The tokens of a vocabulary by the bytes that they begin with; ids are on ``device``."""

    def __init__(self, tokenizer: Tokenizer, device: torch.device = CPU) -> None:
        self._device = device
        self._tokenizer = tokenizer
        self.starting_with = lru_cache(maxsize=256)(self._starting_with)

    def left_of(self, prefix: bytes, tokens: Sequence[int]) -> bytes:
        """The rest of ``prefix`` after ``tokens``; empty where their text is not a beginning of ``prefix``."""
        said = self._tokenizer.decode_bytes(tokens[: len(prefix)])
        return prefix[len(said) :] if prefix.startswith(said) else b""

    def _starting_with(self, prefix: bytes, *, flush: bool = False) -> Tensor:
        """Ids [N] of the tokens whose bytes start with ``prefix``, if ``flush`` those without a blank behind it."""
        ids = self._tokenizer.starting_with(prefix)
        if flush:
            behind = (self._tokenizer.token_bytes(token)[len(prefix) :][:1] for token in ids.tolist())
            ids = ids[[byte not in (b" ", b"\t") for byte in behind]]
        return torch.from_numpy(ids).to(self._device)
