"""The prior of one request: which text stands beside each of its gaps, and how a canvas's rows are mixed with it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lacuna_model.canvas import END_SHARE, Canvas
from lacuna_model.context import Layout
from lacuna_model.prior.index import Segment
from lacuna_model.prior.matching import Allowed
from lacuna_model.prior.proposal import EndEvidence, Proposal, Walk, propose_right
from lacuna_model.prior.suffix_array import MAX_MATCH
from lacuna_model.prior.weights import PriorWeights, fitted, weight

# What is less likely than this was ruled out, and no prior brings it back.
IMPOSSIBLE = -1e3
# Where the drafted tokens so far are less likely than this to be right together, no more is drafted from them.
LEAST_CERTAINTY = 0.05
# A gap ends at END_SHARE already because the canvas side knows of ends too late. The project does not: its part in a
# mixture counts as one that has to reach a half.
END_HANDICAP = 0.5 - END_SHARE


@dataclass(frozen=True, slots=True)
class Draft:
    """A canvas's rows [B, V] as log-probabilities with the prior mixed in, and what was proposed for its slots.

    ``tokens`` [B] are the best of every slot, each given those before: a span that the project has is drafted as a
    whole. A slot's proposal holds if the tokens in front of it are the drafted ones.
    """

    rows: Tensor
    tokens: list[int]
    proposals: list[Proposal | None]


class CanvasPrior:
    """What the project says of one request's gaps."""

    def __init__(
        self, segments: Sequence[Segment], layout: Layout, *, eog_id: int, weights: PriorWeights | None = None
    ) -> None:
        self._segments = segments
        self._eog_id = eog_id
        self._weights = weights or fitted()
        self._beside = {gap: beside(layout, index) for index, gap in enumerate(layout.gaps)}

    def walk(self, canvas: Canvas, allowed: Allowed = None) -> Walk:
        """The way along a canvas from its first open slot; ``allowed`` says what that slot may hold."""
        left, after = self._beside[canvas.gap]
        end = EndEvidence(self._eog_id, after, self._weights.ends)
        return Walk(self._segments, [*left, *canvas.tokens()], end, allowed)

    def draft(self, canvas: Canvas, logits: Tensor) -> Draft:
        """Mix the prior into the logits [B, V] of a canvas.

        Behind the first open slot the project goes on from what is drafted there, so its weight falls with every
        draft that may be wrong.
        """
        rows = logits.log_softmax(-1)
        others = best_others(rows, self._eog_id)
        tokens = best_tokens(rows, self._eog_id, others)
        proposals: list[Proposal | None] = [None] * len(tokens)
        first = canvas.frontier
        healed = first == 0 and not canvas.done and canvas.gap.prefix
        walk = self.walk(canvas, (rows[0] > IMPOSSIBLE).numpy(force=True) if healed else None)
        certainty = 1.0
        for slot in range(first, len(tokens)):
            token = canvas.slots[slot]
            if token is None:
                proposal = walk.proposal()
                if proposal is not None:
                    share = weight(self._weights.draft, proposal)
                    tokens[slot], sure = self._choose(rows[slot], others[slot], proposal, share)
                    self._mix(rows[slot], proposal, share * certainty)
                    certainty *= sure
                proposals[slot], token = proposal, tokens[slot]
            if token == self._eog_id or slot + 1 == len(tokens) or certainty < LEAST_CERTAINTY:
                break
            walk.take(token)
        self._mix_right(canvas, rows)
        return Draft(rows, tokens, proposals)

    def guided(self, row: Tensor, proposal: Proposal) -> float:
        """Mix the prior into a guided row [V] of log-probabilities; returns the end's share in what was mixed in."""
        share = weight(self._weights.guided, proposal)
        self._mix(row, proposal, share)
        return share * float(proposal.shares[proposal.ids == self._eog_id].sum())

    def _choose(self, row: Tensor, best: int, proposal: Proposal, share: float) -> tuple[int, float]:
        """The best token of a mixture and its probability; ``best`` is the model's own."""
        ids = np.append(proposal.ids, [best, self._eog_id])
        said = row[torch.from_numpy(ids).to(row.device)].double().exp().numpy(force=True)
        mixed = (1 - share) * said
        mixed[:-2] += share * proposal.shares * (said[:-2] > 0)
        for added in (-2, -1):  # those that the project offers too are counted there
            mixed[added] = mixed[:-2][ids[:-2] == ids[added]].sum() or mixed[added]
        if mixed[-1] - share * END_HANDICAP > END_SHARE:
            return self._eog_id, float(mixed[-1])
        mixed[ids == self._eog_id] = 0.0
        chosen = int(mixed.argmax())
        return int(ids[chosen]), float(mixed[chosen])

    def _mix(self, row: Tensor, proposal: Proposal, share: float) -> None:
        """Mix a left proposal in; the end is less likely by the prior's share of the handicap."""
        mix(row, proposal, share)
        end = math.exp(float(row[self._eog_id])) - share * END_HANDICAP
        row[self._eog_id] = math.log(end) if end > 0 else min(IMPOSSIBLE, float(row[self._eog_id]))

    def _mix_right(self, canvas: Canvas, rows: Tensor) -> None:
        """Mix in what the project has in front of committed slots, where the slot before them is open."""
        _, after = self._beside[canvas.gap]
        for slot in range(canvas.frontier, len(canvas.slots) - 1):
            if canvas.slots[slot] is None and canvas.slots[slot + 1] is not None:
                right = list(_run(canvas.slots[slot + 1 :]))
                if right[-1] == self._eog_id:
                    right = [*right[:-1], *after]
                proposal = propose_right(self._segments, right[:MAX_MATCH]) if right else None
                if proposal is not None:
                    mix(rows[slot], proposal, weight(self._weights.right, proposal))


def mix(row: Tensor, proposal: Proposal, share: float) -> None:
    """``p = (1 - share) * model + share * prior`` in place, on log-probabilities [V]; what was ruled out stays so."""
    offered = torch.from_numpy(proposal.ids).to(row.device)
    said = row[offered]
    possible = said > IMPOSSIBLE
    shares = torch.from_numpy(proposal.shares).to(said)[possible]
    row += math.log1p(-share * float(shares.sum()))
    row[offered[possible]] = torch.logaddexp(row[offered[possible]], (share * shares).log())


def beside(layout: Layout, index: int) -> tuple[list[int], list[int]]:
    """The context tokens on the left and on the right of a gap, up to its neighbours."""
    after, gap = layout.after.ids, layout.gaps[index]
    borders = [1, *(later.parent_len for later in layout.gaps[1:]), len(after)]
    left = layout.before.ids[1:] if gap.parent == "before" else after[borders[index - 1] : gap.parent_len]
    right = after[borders[index] : borders[index + 1]]
    return list(left[-MAX_MATCH:]), list(right[:MAX_MATCH])


def _run(slots: Sequence[int | None]) -> Sequence[int]:
    """The committed slots up to the first open one."""
    found = []
    for token in slots:
        if token is None:
            break
        found.append(token)
    return found


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
