"""What logits over open slots come to: what cannot stand is ruled out, the rest is summed up as candidates."""

import torch
from torch import Tensor

from lacuna_kernels import unmask
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.tokens.prefixes import PrefixTable

NUM_CANDIDATES = 12
# A logit that rules a token out; finite, so that sums stay numbers.
RULED_OUT = -1e4
# A fill ends where the end is at least this probable: it outweighs many ways to go on that are all unlikely.
END_SHARE = 0.4


def restrict(canvas: Canvas, logits: Tensor, prefixes: PrefixTable, eog_id: int) -> Tensor:
    """Rule out what cannot stand in a block [B, V]: no text, a start without the healed text, an end too early."""
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
    """Rule out all tokens of a row [V] but the ``allowed`` ids [N]."""
    kept = row[allowed].clone()
    row.fill_(RULED_OUT)
    row[allowed] = kept


def summary(rows: Tensor, eog_id: int) -> Marginals:
    """The marginals of log-probabilities ``rows`` [R, V], which are not to be used any more."""
    ids, logp, entropy = unmask(_end_if_likely(rows, eog_id), NUM_CANDIDATES)
    return Marginals(ids.numpy(force=True), logp.numpy(force=True), entropy.numpy(force=True))


def _end_if_likely(rows: Tensor, eog_id: int) -> Tensor:
    """Let end-of-gap be the best candidate where its probability is over ``END_SHARE``, and only there.

    It competes with all tokens together, not with the best of them: many ways to go on are no reason to end.
    """
    end = rows[:, eog_id].clone()
    rows[:, eog_id] = RULED_OUT
    best = rows.amax(-1)
    likely = end.exp() > END_SHARE
    rows[:, eog_id] = torch.where(likely, torch.maximum(end, best + 1e-3), torch.minimum(end, best - 1e-3))
    return rows
