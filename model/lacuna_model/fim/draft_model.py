"""A smaller model of the same tokens drafts for a larger one (speculative decoding, arXiv 2211.17192).

It reads the same prompts into keys and values of its own. A token that it drafts costs one of its passes, about a third
of a pass of the larger model; where the larger one would write the same, that saves a pass. Its own drafter drafts for
it in turn, so that a pass of it often yields two tokens.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lacuna_model.core.context import Layout
from lacuna_model.decode.canvas import Key
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.drafting.costs import FLAT_ROWS
from lacuna_model.fim.drafting.drafts import Drafts, Proposal, Start
from lacuna_model.fim.drafting.holding import Guess
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.tracks import Track, common_prefix

# Its own drafter drafts at most so many tokens; wider passes would cost it more.
MOST_AHEAD = 3


@dataclass(slots=True)
class Line:
    """What was read of one canvas last: ``states`` [n, H] from place ``first`` of the track on.

    ``proposals`` are the likeliest tokens after the last of these places, with their probabilities.
    """

    track: Track
    first: int = 0
    states: Tensor | None = None
    proposals: list[tuple[int, float]] = field(default_factory=list)

    def proposal(self, ids: Sequence[int]) -> tuple[int, float] | None:
        """The token after ``ids``, if they were read last."""
        place = len(ids) - 1 - (len(self.track.ids) - len(self.proposals))
        if 0 <= place < len(self.proposals) and self.track.ids[: len(ids)] == ids:
            return self.proposals[place]
        return None

    def start(self, ids: Sequence[int]) -> Start | None:
        """The last state before the last of ``ids`` that was read, and the tokens since; None where there is none."""
        last = min(common_prefix(self.track.ids, ids), len(ids) - 1) - 1
        if self.states is None or last < self.first:
            return None
        return Start(self.states[last - self.first], ids[last + 1 :])


class DraftModel:
    """The drafts of one request by the model ``smaller``, whose ``context`` has the request's prompts.

    ``begin`` is the token between the prompt of a gap and its fill.
    """

    def __init__(self, smaller: LoadedFim, context: FimContext, layout: Layout, begin: int) -> None:
        self._model = smaller
        self._context = context
        self._begin = begin
        specials = smaller.tokenizer.special_ids
        self._ahead = Drafts(layout, (), smaller.drafter, smaller.costs, context.holding, specials)
        self._lines: dict[Key, Line] = {}

    def settle(self, fills: Sequence[Sequence[int]]) -> None:
        """Put the fills of the first gaps, as tokens, into the prompts of the later ones; empty: not filled yet."""
        self._context.settle(fills)

    def is_ready(self, gap: int) -> bool:
        """Whether it can draft for a gap; asked once a pass, since it catches up with what it did not read."""
        return self._context.catch_up(gap)

    @torch.inference_mode()
    def proposal(self, key: Key, written: Sequence[int]) -> Proposal:
        """The likeliest token after those ``written`` in a canvas."""
        if key not in self._lines:
            self._lines[key] = Line(self._context.reader.new())
        line, ids = self._lines[key], [self._begin, *written]
        if (known := line.proposal(ids)) is not None:
            return Proposal(*known)
        began = time.perf_counter()
        ahead = self._ahead.draft(key, written, MOST_AHEAD, line.start(ids), 1)
        passed, recorded = time.perf_counter(), self._model.transformer.recorded
        rows = self._read(line, key[1], ids, ahead)
        ended = time.perf_counter()
        if rows > FLAT_ROWS or self._model.transformer.recorded > recorded:  # it had to catch up, or prepared passes
            return Proposal(*line.proposals[0])
        self._model.costs.saw_pass(rows, (ended - passed) * 1e3)
        held = 0
        while held < len(ahead) and line.proposals[held][0] == ahead[held].token:
            held += 1
        self._ahead.verified(ahead, held)
        return Proposal(*line.proposals[0], ms=(ended - began) * 1e3 / (1 + held))

    def _read(self, line: Line, gap: int, ids: Sequence[int], ahead: Sequence[Guess]) -> int:
        """Read what is not read yet of ``ids``, their last token, and those drafted after it; returns the rows read."""
        chain, track = self._context.chain(gap), line.track
        track.become([*ids, *(guess.token for guess in ahead)], sum(len(one.ids) for one in chain))
        track.forget_from(len(ids) - 1)  # the last token is read again, for its output
        read = self._context.reader.read([[*chain, track]])
        line.states = read[track]
        line.first = len(track.ids) - len(line.states)
        outputs = self._model.frequent_head(line.states[-1 - len(ahead) :])
        best, tokens = outputs.float().softmax(-1).max(-1)
        copied = torch.stack((tokens, best), dim=-1).tolist()  # ids are exact in float32
        line.proposals = [(int(token), probability) for token, probability in copied]
        return sum(map(len, read.values()))


def can_draft(smaller: LoadedFim, larger: LoadedFim) -> bool:
    """Whether both models have the same tokens."""
    one, other = smaller.tokenizer.vocabulary, larger.tokenizer.vocabulary
    common = common_prefix(one.tokens, other.tokens)  # padding may follow
    return one.fim == other.fim and common >= min(len(one.tokens), len(other.tokens)) and one.merges == other.merges
