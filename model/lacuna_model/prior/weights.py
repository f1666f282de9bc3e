"""How much each voice of the mixture counts; fitted by ``lacuna train prior``."""

from functools import cache
from importlib import resources

import msgspec
import numpy as np

from lacuna_model.prior.proposal import Proposal, features


class MixtureWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fitted numbers.

    ``draft``, ``guided`` and ``right`` [5 each] are coefficients of a proposal's features in the log-odds of its
    weight: against the canvas side alone, against it guided by the base, and for matches on the right of a slot.
    ``ends`` [END_TOKENS + 1] are the rates at which a fill ends where so many tokens behind a match are those behind
    the gap. ``spans`` [7] are the coefficients of a whole span's features in its log-odds, ``spoken`` [4] those of
    these log-odds and of what the base says of it. ``drafted_end`` [2] and ``guided_end`` [3] are the log-odds of an
    end: a constant, and what the log-probabilities count of the canvas side's end and, guided, of the text behind the
    gap going on here.
    """

    draft: tuple[float, ...]
    guided: tuple[float, ...]
    right: tuple[float, ...]
    ends: tuple[float, ...]
    spans: tuple[float, ...]
    spoken: tuple[float, ...]
    drafted_end: tuple[float, float]
    guided_end: tuple[float, float, float]


def weight(coefficients: tuple[float, ...], proposal: Proposal) -> float:
    """The weight of a proposal in a mixture, in 0..1."""
    return float(1 / (1 + np.exp(-np.dot(coefficients, features(proposal.length, proposal.count, proposal.purity)))))


@cache
def fitted() -> MixtureWeights:
    """The numbers that ship with the package."""
    text = resources.files("lacuna_model").joinpath("prior", "weights.json").read_bytes()
    return msgspec.json.decode(text, type=MixtureWeights)
