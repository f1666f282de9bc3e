"""How much the prior counts, as a function of its match; fitted by ``lacuna train prior``."""

from functools import cache
from importlib import resources

import msgspec
import numpy as np

from lacuna_model.prior.proposal import Proposal, features


class PriorWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fitted numbers.

    ``draft``, ``guided`` and ``right`` [5 each] are coefficients of a proposal's features in the log-odds of its
    weight: against the canvas side alone, against it guided by the base, and for matches on the right of a slot.
    ``ends`` [END_TOKENS + 1] are the rates at which a fill ends where so many tokens behind a match are those behind
    the gap.
    """

    draft: tuple[float, ...]
    guided: tuple[float, ...]
    right: tuple[float, ...]
    ends: tuple[float, ...]


def weight(coefficients: tuple[float, ...], proposal: Proposal) -> float:
    """The weight of a proposal in a mixture, in 0..1."""
    return float(1 / (1 + np.exp(-np.dot(coefficients, features(proposal.length, proposal.count, proposal.purity)))))


@cache
def fitted() -> PriorWeights:
    """The numbers that ship with the package."""
    text = resources.files("lacuna_model").joinpath("prior", "weights.json").read_bytes()
    return msgspec.json.decode(text, type=PriorWeights)
