"""The workspace prior alone, left to right: how far the project's own text gets without a model."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from lacuna_model.context import lay_out
from lacuna_model.ending import END_SHARE
from lacuna_model.params import FillStats, InfillRequest, InfillResult, Region
from lacuna_model.prior.canvas_prior import beside
from lacuna_model.prior.index import Documents, Segment
from lacuna_model.prior.matching import Allowed
from lacuna_model.prior.proposal import EndEvidence, Proposal, Walk
from lacuna_model.prior.suffix_array import token_type
from lacuna_model.prior.weights import fitted
from lacuna_model.regions import splice
from lacuna_model.stopping import StopRule, trim_overlap
from lacuna_model.tokenizer import Tokenizer


class PriorAlone:
    """Fills gaps in order with the most frequent continuation of the longest match; satisfies the runner's ``Filler``.

    ``segments`` gives what is known of the workspace beside a document. Like the model's fills these end where the
    text behind the gap would be repeated; besides where the project knows no way on.
    """

    name = "prior"

    def __init__(self, tokenizer: Tokenizer, segments: Callable[[InfillRequest], Sequence[Segment]]) -> None:
        self._tokenizer = tokenizer
        self._segments = segments
        self._kind = token_type(tokenizer.vocab_size)

    def fill(self, request: InfillRequest) -> InfillResult:
        """One fill per region of the request; its decode options do not apply."""
        started = time.perf_counter()
        source, elsewhere = request.text.encode(), self._segments(request)
        fills: list[str] = []
        for index, region in enumerate(request.regions):
            done = request.regions[:index]
            before = splice(source[: region.start], done, fills).decode()
            later = request.regions[index + 1].start if index + 1 < len(request.regions) else len(source)
            fills.append(self._fill_one(before, source[region.end : later].decode(), region, elsewhere))
        stats = FillStats(
            tokens=sum(len(self._tokenizer.encode(fill)) for fill in fills),
            ms=(time.perf_counter() - started) * 1000,
        )
        return InfillResult("ok", splice(source, request.regions, fills).decode(), tuple(fills), stats)

    def _fill_one(self, before: str, after: str, region: Region, elsewhere: Sequence[Segment]) -> str:
        encode = self._tokenizer.encode
        layout = lay_out([before, after], self._tokenizer, reserve=lambda _: 0, hole=0)
        (gap,) = layout.gaps
        left, right = beside(layout, 0)
        here = Segment(Documents.index({"before": encode(before), "after": encode(after)}, self._kind))
        end = EndEvidence(self._tokenizer.eog_id, right, fitted().ends)
        walk = Walk([*elsewhere, here], left, end, self._starting_with(gap.prefix))
        rule = StopRule.between(before, after)
        tokens: list[int] = []
        while True:
            proposal = walk.proposal()
            token = self._tokenizer.eog_id if proposal is None else self._best(proposal)
            final = token == self._tokenizer.eog_id or len(tokens) + 1 >= region.max_tokens
            if token != self._tokenizer.eog_id:
                tokens.append(token)
                walk.take(token)
            text = self._tokenizer.decode_bytes(tokens)[len(gap.prefix) :].decode("utf-8", errors="ignore")
            fill = rule.end(text, final=final)
            if fill is not None:
                return trim_overlap(fill, after)

    def _best(self, proposal: Proposal) -> int:
        """The most frequent token; as with the model, the end where its share is over ``END_SHARE``."""
        ends = proposal.ids == self._tokenizer.eog_id
        if proposal.shares[ends].sum() > END_SHARE:
            return self._tokenizer.eog_id
        return int(proposal.ids[~ends][0])

    def _starting_with(self, prefix: bytes) -> Allowed:
        """Flags of the tokens that begin with the healed text."""
        texts = map(self._tokenizer.token_bytes, range(self._tokenizer.vocab_size))
        return np.array([text.startswith(prefix) for text in texts]) if prefix else None
