"""How likely a gap ends at a slot: what the model says of it, calibrated."""

from collections.abc import Sequence

import torch
from torch import Tensor

# A fill ends where the end is at least this probable. It outweighs many ways to go on that are all unlikely, and
# gaps were restored exactly most often with 0.3 to 0.5.
END_SHARE = 0.4
# A logit that rules a token out; finite, so that a mixture of weight 0 stays a number.
RULED_OUT = -1e4
# What is less likely than this was ruled out.
IMPOSSIBLE = -1e3
# Smaller log-probabilities tell nothing more.
FLOOR = -12.0


def end_odds(coefficients: Sequence[float], *said: Tensor) -> Tensor:
    """Log-probabilities of an end from ``said``, log-probabilities that speak for one; what was ruled out stays so.

    Where the text behind the gap would go on naturally, the fill is complete: p(end | fill, after) grows with
    p(after | fill), which the base knows exactly.
    """
    constant, *counts = coefficients
    total = sum((count * each.clamp_min(FLOOR) for count, each in zip(counts, said, strict=True)), torch.zeros(()))
    calibrated = torch.nn.functional.logsigmoid(constant + total)
    return torch.where(said[0] > IMPOSSIBLE, calibrated, torch.full_like(calibrated, RULED_OUT))


def with_ends(rows: Tensor, end_id: int, ends: Tensor) -> Tensor:
    """Log-probabilities [.., V] whose end has the log-probabilities ``ends`` [..], and all else shares the rest.

    ``rows`` are not to be used any more.
    """
    rows[..., end_id] = RULED_OUT
    rows = rows.log_softmax(-1)
    rows += torch.log1p(-ends.exp().clamp_max(1 - 1e-6)).unsqueeze(-1)
    rows[..., end_id] = ends
    return rows


def best_others(rows: Tensor, end_id: int) -> list[int]:
    """The best token of every row [B, V] but for the end."""
    ends = rows[:, end_id].clone()
    rows[:, end_id] = -torch.inf
    best: list[int] = rows.argmax(-1).tolist()
    rows[:, end_id] = ends
    return best


def best_tokens(rows: Tensor, end_id: int, others: Sequence[int] | None = None) -> list[int]:
    """The best token of every row [B, V] of log-probabilities; the end wherever it is likelier than ``END_SHARE``."""
    ends = rows[:, end_id].exp() > END_SHARE
    others = best_others(rows, end_id) if others is None else others
    return [end_id if end else other for end, other in zip(ends.tolist(), others, strict=True)]
