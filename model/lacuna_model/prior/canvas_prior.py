"""The prior of one request: which text stands beside each of its gaps, and how a canvas's rows are mixed with it."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_model.canvas import Canvas, Key
from lacuna_model.context import Gap, Layout
from lacuna_model.ending import END_SHARE, IMPOSSIBLE, best_tokens
from lacuna_model.prior.index import Segment
from lacuna_model.prior.line_above import LineAbove
from lacuna_model.prior.matching import Allowed, Match
from lacuna_model.prior.proposal import EndEvidence, Proposal, Walk, propose_right
from lacuna_model.prior.spans import Span, Spoken, find_spans, log_odds, probabilities
from lacuna_model.prior.suffix_array import MAX_MATCH
from lacuna_model.prior.weights import MixtureWeights, fitted, weight
from lacuna_model.rows import Rows

# Where the drafted tokens so far are less likely than this to be right together, no more is drafted from them.
LEAST_CERTAINTY = 0.1
# A proposal that counts for less than this changes nothing.
LEAST_SHARE = 0.03
# A span that is the whole fill with this probability is taken: what the model writes token by token is exactly right
# about once in twenty places.
SPAN_SHARE = 0.12
# The base is asked about spans that are the fill with this probability by what stands beside them, so many at once.
WORTH_READING = 0.03
MOST_READ = 4
# Within a fill a span is looked for behind so many matching tokens: shorter matches were looked at where it began.
LEAST_MATCH = 4
# What a settled slot leaves to other tokens, for a constraint that refuses its own.
UNSETTLED = 0.05


# What the base says of texts that may follow what is committed of a canvas.
Says = Callable[[Canvas, Sequence[Sequence[int]]], Sequence[Spoken]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A canvas's rows with the prior mixed in, and what was proposed for its slots.

    ``tokens`` [B] are the best of every slot, each given those before. A slot's proposal holds if the tokens in front
    of it are the drafted ones. The first ``settled`` open slots hold a span of the project up to its end or the
    block's: nothing else is asked of them.
    """

    rows: Rows
    tokens: list[int]
    proposals: list[Proposal | None]
    settled: int = 0


class CanvasPrior:
    """What the project says of one request's gaps."""

    def __init__(
        self,
        segments: Sequence[Segment],
        layout: Layout,
        *,
        eog_id: int,
        weights: MixtureWeights | None = None,
        above: Sequence[LineAbove] = (),
    ) -> None:
        self._segments = segments
        self._eog_id = eog_id
        self._weights = weights or fitted()
        self._beside = {gap: beside(layout, index) for index, gap in enumerate(layout.gaps)}
        self._above = dict(zip(layout.gaps, above, strict=False))  # there may be none
        # The span taken for each canvas with its probability, spans passed over, and canvases that are to have none.
        self._spans: dict[Key, tuple[float, list[int]]] = {}
        self._passed_over: defaultdict[Key, set[tuple[int, ...]]] = defaultdict(set)
        self._withdrawn: set[Key] = set()

    def walk(self, canvas: Canvas, allowed: Allowed = None) -> Walk:
        """The way along a canvas from its first open slot; ``allowed`` says what that slot may hold."""
        left, after = self._beside[canvas.gap]
        end = EndEvidence(self._eog_id, after, self._weights.ends)
        return Walk(self._segments, [*left, *canvas.tokens()], end, allowed)

    def draft(self, canvas: Canvas, rows: Rows, best: Sequence[int], says: Says) -> Draft:
        """Mix the prior into what was read of a canvas; ``best`` [B] is the model's own, ``says`` asks the base.

        Behind the first open slot the project goes on from what is drafted there, so its weight falls with every
        draft that may be wrong.
        """
        tokens = best_tokens(rows.read, self._eog_id, best)
        draft = Draft(rows, tokens, [None] * len(tokens))
        first = canvas.frontier
        at_start = first == 0 and not canvas.done
        allowed = (rows[0] > IMPOSSIBLE).numpy(force=True) if at_start and canvas.gap.prefix else None
        walk = self.walk(canvas, allowed)
        span = self._to_settle(canvas, walk.match, allowed, says)
        if span and rows[first][span[0]] > IMPOSSIBLE:
            return settle(draft, first, span)
        certainty, written = 1.0, canvas.tokens()
        for slot in range(first, len(tokens)):
            token = canvas.slots[slot]
            if token is None:
                proposal = self._proposal(canvas.gap, walk, written)
                if proposal is not None:
                    share = weight(self._weights.draft, proposal)
                    tokens[slot], sure = self._choose(rows[slot], best[slot], proposal, share)
                    if share * certainty > LEAST_SHARE:
                        mix(rows.own(slot), proposal, share * certainty)
                    certainty *= sure
                draft.proposals[slot], token = proposal, tokens[slot]
            if token == self._eog_id or slot + 1 == len(tokens) or certainty < LEAST_CERTAINTY:
                break
            walk.take(token)
            written.append(token)
        self._mix_right(canvas, rows)
        return draft

    def guided(self, row: Tensor, proposal: Proposal) -> float:
        """Mix the prior into a guided row [V] of log-probabilities; returns the end's share in what was mixed in."""
        share = weight(self._weights.guided, proposal)
        mix(row, proposal, share)
        return share * float(proposal.shares[proposal.ids == self._eog_id].sum())

    def withdraw(self) -> bool:
        """Take back the least likely span, for not all of them can stand beside each other; whether there was one."""
        if not self._spans:
            return False
        least = min(self._spans, key=lambda key: self._spans[key][0])
        del self._spans[least]
        self._withdrawn.add(least)
        return True

    def _to_settle(self, canvas: Canvas, match: Match | None, allowed: Allowed, says: Says) -> list[int]:
        """What the span that is to be this fill has for the slots from the first open one on, where there is one."""
        span = self._span(canvas, match, allowed, says)
        if span is None:
            return []
        first = canvas.frontier
        going_on = [*span[len(canvas.tokens()) :], self._eog_id][: len(canvas.slots) - first]
        if any(canvas.slots[slot] not in (None, token) for slot, token in enumerate(going_on, start=first)):
            return []
        return going_on

    def _span(self, canvas: Canvas, match: Match | None, allowed: Allowed, says: Says) -> list[int] | None:
        """The whole fill that the project has for a canvas, if it is likely enough; once taken, it is followed."""
        written, key = canvas.tokens(), canvas.key
        if key in self._spans and self._spans[key][1][: len(written)] == written:
            return self._spans[key][1]
        self._spans.pop(key, None)
        if key in self._withdrawn or match is None or (written and match.length < LEAST_MATCH):
            return None
        found = self._promising(canvas, written, allowed)
        if not found:
            return None
        spoken = says(canvas, [span.tokens for span, _ in found])
        odds = [np.dot(self._weights.spoken, said.features(own)) for (_, own), said in zip(found, spoken, strict=True)]
        chances = probabilities(odds)
        best = int(chances.argmax())
        if chances[best] < SPAN_SHARE:
            self._passed_over[key].update((*written, *span.tokens) for span, _ in found)
            return None
        self._spans[key] = float(chances[best]), [*written, *found[best][0].tokens]
        return self._spans[key][1]

    def _promising(self, canvas: Canvas, written: Sequence[int], allowed: Allowed) -> list[tuple[Span, float]]:
        """The spans for the rest of a fill that are worth the base's reading, with their log-odds, best first."""
        left, after = self._beside[canvas.gap]
        least, most = max(canvas.least, 1), len(canvas.done) + canvas.room
        passed_over, above = self._passed_over[canvas.key], self._above.get(canvas.gap)
        spans = [
            span
            for span in find_spans(self._segments, [*left, *written], after, allowed)
            if least <= len(written) + len(span.tokens) <= most
            and (*written, *span.tokens) not in passed_over
            and not (above and above.repeats((*written, *span.tokens)))
        ]
        odds = log_odds(spans, self._weights.spans)
        ranked = sorted(zip(spans, odds, probabilities(odds), strict=True), key=lambda one: -one[2])
        return [(span, own) for span, own, chance in ranked[:MOST_READ] if chance >= WORTH_READING]

    def _proposal(self, gap: Gap, walk: Walk, written: Sequence[int]) -> Proposal | None:
        """What may stand behind the ``written`` tokens of a gap, but for what would make a line the one above it."""
        proposal, above = walk.proposal(), self._above.get(gap)
        if proposal is None or above is None:
            return proposal
        copied = above.copied(written)
        return proposal if copied is None else proposal.without(copied)

    def _choose(self, row: Tensor, best: int, proposal: Proposal, share: float) -> tuple[int, float]:
        """The best token of a mixture and its probability; ``best`` is the model's own."""
        said = probabilities_of(row, [*proposal.ids.tolist(), best, self._eog_id])
        mixed = dict(zip((best, self._eog_id), (1 - share) * said[-2:], strict=True))
        mixed |= dict(zip(proposal.ids.tolist(), _mixed(said[:-2], proposal, share), strict=True))
        end = mixed.pop(self._eog_id)
        if end > END_SHARE:
            return self._eog_id, float(end)
        chosen = max(mixed, key=lambda token: mixed[token])
        return chosen, float(mixed[chosen])

    def _mix_right(self, canvas: Canvas, rows: Rows) -> None:
        """Mix in what the project has in front of committed slots, where the slot before them is open."""
        _, after = self._beside[canvas.gap]
        for slot in range(canvas.frontier, len(canvas.slots) - 1):
            if canvas.slots[slot] is None and canvas.slots[slot + 1] is not None:
                right = list(_run(canvas.slots[slot + 1 :]))
                if right[-1] == self._eog_id:
                    right = [*right[:-1], *after]
                proposal = propose_right(self._segments, right[:MAX_MATCH]) if right else None
                if proposal is not None:
                    mix(rows.own(slot), proposal, weight(self._weights.right, proposal))


def settle(draft: Draft, first: int, tokens: Sequence[int]) -> Draft:
    """The draft with ``tokens`` settled from the slot ``first`` on."""
    for slot, token in enumerate(tokens, start=first):
        draft.tokens[slot] = token
        row = draft.rows.own(slot)
        row += math.log(UNSETTLED)
        row[token] = math.log(1 - UNSETTLED)
    return replace(draft, settled=len(tokens))


def mix(row: Tensor, proposal: Proposal, share: float) -> None:
    """``p = (1 - share) * model + share * prior`` in place, on log-probabilities [V]; what was ruled out stays so."""
    said = probabilities_of(row, proposal.ids)
    mixed = _mixed(said, proposal, share)
    row += math.log1p(-share * float(proposal.shares[said > 0].sum()))
    offered = torch.from_numpy(proposal.ids[said > 0]).to(row.device)
    row[offered] = torch.from_numpy(np.log(mixed[said > 0])).to(row)


def probabilities_of(row: Tensor, ids: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
    """The probabilities of some tokens by a row [V] of log-probabilities."""
    picked = row[torch.as_tensor(ids, device=row.device)]
    return np.asarray(np.exp(picked.numpy(force=True).astype(np.float64)))


def _mixed(said: NDArray[np.float64], proposal: Proposal, share: float) -> NDArray[np.float64]:
    """The probabilities of what is proposed, mixed with the model's own, ``said``; what was ruled out has none."""
    offered = share * proposal.shares * (said > 0)
    return np.asarray((1 - offered.sum()) * said + offered)


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
