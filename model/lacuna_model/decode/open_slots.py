"""Turns logits over open slots into marginals: rules out impossible tokens and keeps the best candidates."""

import torch
from torch import Tensor

from lacuna_kernels import unmask
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.tokens.prefixes import PrefixTable

NUM_CANDIDATES = 12
# The logit of a token that is ruled out; finite, so that sums stay finite.
RULED_OUT = -1e4
# A fill ends where end-of-gap is at least this probable: many continuations that are each unlikely do not outweigh it.
END_SHARE = 0.4


def restrict(canvas: Canvas, logits: Tensor, prefixes: PrefixTable, eog_id: int) -> Tensor:
    """Rule out impossible tokens in the logits [B, V] of a block, in place, and return the logits.

    Ruled out are special tokens other than end-of-gap, starts that do not repeat the healed text, and an end that is
    too early.
    """
    logits.index_fill_(1, prefixes.specials_but(eog_id), RULED_OUT)
    early = canvas.least - len(canvas.done)
    if early > 0:
        logits[:early, eog_id] = RULED_OUT
    due = prefixes.due(canvas.gap.prefix, canvas.done)
    for token, row in zip(canvas.slots, logits, strict=False):
        if not due:
            break
        only(row, prefixes.going_on(due, token))
        due = b"" if token is None else prefixes.due(due, [token])
    return logits


def only(row: Tensor, allowed: Tensor) -> None:
    """Rule out all tokens of a row [V] except the ``allowed`` ids [N]."""
    kept = row[allowed].clone()
    row.fill_(RULED_OUT)
    row[allowed] = kept


def summary(rows: Tensor, eog_id: int) -> Marginals:
    """The marginals of log-probabilities ``rows`` [R, V], which are overwritten."""
    ids, logp, entropy = unmask(_end_if_likely(rows, eog_id), NUM_CANDIDATES)
    return Marginals(ids.numpy(force=True), logp.numpy(force=True), entropy.numpy(force=True))


def _end_if_likely(rows: Tensor, eog_id: int) -> Tensor:
    """Make end-of-gap the best candidate where its probability is over ``END_SHARE``, and only there.

    It is compared with all tokens together, not with the best one: many ways to continue are no reason to end.
    """
    end = rows[:, eog_id].clone()
    rows[:, eog_id] = RULED_OUT
    best = rows.amax(-1)
    likely = end.exp() > END_SHARE
    rows[:, eog_id] = torch.where(likely, torch.maximum(end, best + 1e-3), torch.minimum(end, best - 1e-3))
    return rows
