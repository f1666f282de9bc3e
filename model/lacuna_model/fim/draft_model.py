"""A smaller model of the same tokens drafts for a larger one (speculative decoding, arXiv 2211.17192).

It reads the same prompts into keys and values of its own. It drafts one token after another, each in a pass of its
own, about a third of a pass of the larger model; its own drafter drafts for it in turn, so that a pass of it often
yields two tokens. Or, where it has mask rows, it drafts in parallel: one pass over the last tokens of all canvases and
masks behind them denoises all slots at once, and further passes read the likely ones and denoise the others again.
Which of it is done is for :mod:`.drafting.rounds` to say.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lacuna_model.core.context import Layout
from lacuna_model.decode.fill import Key
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.drafting.acceptance_rates import AcceptanceRates, DraftedToken
from lacuna_model.fim.drafting.costs import FLAT_ROWS, PassCosts
from lacuna_model.fim.drafting.drafts import DrafterStart, Drafts, ProposedToken
from lacuna_model.fim.drafting.rounds import Round, confident
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.tracks import Chain, Track, common_prefix

# Its own drafter drafts at most so many tokens; wider passes would cost it more.
MAX_AHEAD = 3
# Passes that denoise a round's slots, at most.
MAX_STEPS = 3
# Once in so many rounds of all documents it drafts in the way that seems the slower one, to see whether that is so.
TRY_AGAIN, FIRST_TRIAL = 64, 8


@dataclass(slots=True)
class ReadCanvas:
    """What was read of one canvas last: ``states`` [n, H] from place ``first`` of the track on.

    ``proposals`` are the likeliest tokens after the last of these places, with their probabilities; ``masked`` those of
    the mask rows behind them.
    """

    track: Track
    first: int = 0
    states: Tensor | None = None
    proposals: list[tuple[int, float]] = field(default_factory=list)
    masked: list[tuple[int, float]] = field(default_factory=list)

    def proposal(self, ids: Sequence[int]) -> ProposedToken | None:
        """The token after ``ids``, if they were read last, or are these and what was proposed behind them."""
        read = len(self.track.ids)
        place = len(ids) - 1 - (read - len(self.proposals))
        if list(ids[:read]) != self.track.ids[: len(ids)] or place < 0:
            return None
        if place < len(self.proposals):
            return ProposedToken(*self.proposals[place])
        run, slot = [*self.proposals[-1:], *self.masked], len(ids) - read
        if slot < len(run) and list(ids[read:]) == [token for token, _ in run[:slot]]:
            return ProposedToken(*run[slot], slot)
        return None

    def start(self, ids: Sequence[int]) -> DrafterStart | None:
        """The last state before the last of ``ids`` that was read, and the tokens since; None where there is none."""
        last = min(common_prefix(self.track.ids, ids), len(ids) - 1) - 1
        if self.states is None or last < self.first:
            return None
        return DrafterStart(self.states[last - self.first], ids[last + 1 :])


@dataclass(frozen=True, slots=True)
class CanvasTokens:
    """What a pass reads of a canvas: the last of ``ids``, those of them that are unread, and the tokens ``ahead``."""

    key: Key
    ids: list[int]
    ahead: list[int] = field(default_factory=list)


class DraftModel:
    """The drafts of one request by the model ``smaller``, whose ``context`` has the request's prompts.

    ``begin`` is the token between the prompt of a gap and its fill. ``costs`` and ``rates`` are those of the model
    that verifies.
    """

    def __init__(
        self,
        smaller: LoadedFim,
        context: FimContext,
        layout: Layout,
        begin: int,
        costs: PassCosts,
        rates: AcceptanceRates,
    ) -> None:
        self._model = smaller
        self._context = context
        self._begin = begin
        self._costs = costs
        self._rates = rates
        self._specials = smaller.tokenizer.special_ids
        self._ahead = Drafts(layout, (), smaller.drafter, smaller.costs, context.rates, self._specials)
        self._lines: dict[Key, ReadCanvas] = {}
        self._wanted: dict[Key, list[int]] = {}
        self._denoised = False

    def settle(self, fills: Sequence[Sequence[int]]) -> None:
        """Put the fills of the first gaps, as tokens, into the prompts of the later ones; empty: not filled yet."""
        self._context.settle(fills)

    def prepare(self, wanted: Mapping[Key, Sequence[int]]) -> None:
        """Begin a round: the canvases to draft for, with the tokens written in each. Called once a pass.

        It catches up with what it did not read of their prompts.
        """
        ready = {gap: self._context.catch_up(gap) for gap in dict.fromkeys(gap for _, gap in wanted)}
        self._wanted = {key: self._begun(key, written) for key, written in wanted.items() if ready[key[1]]}
        self._denoised = False

    def _begun(self, key: Key, written: Sequence[int]) -> list[int]:
        return [self._context.begins(key[1], self._begin), *written]

    def is_ready(self, key: Key) -> bool:
        """Whether it can draft for a canvas in this round."""
        return key in self._wanted

    def known(self, key: Key, written: Sequence[int]) -> ProposedToken | None:
        """As :meth:`proposal`, where that takes no pass; else None."""
        return self._lines[key].proposal(self._begun(key, written)) if key in self._lines else None

    @torch.inference_mode()
    def proposal(self, key: Key, written: Sequence[int]) -> ProposedToken:
        """The likeliest token after those ``written`` in a canvas."""
        found = self.known(key, written)
        if found is None and not self._denoised and self._model.transformer.masks is not None:
            self._denoised = True  # at most once a round
            self._wanted[key] = self._begun(key, written)
            self._denoise()
            found = self.known(key, written)
        return found or self._after(key, self._begun(key, written))

    def _after(self, key: Key, ids: list[int]) -> ProposedToken:
        """The likeliest token after ``ids``, by a pass of its own, in which the drafter's tokens are verified."""
        line = self._line(key)
        began = time.perf_counter()
        ahead = self._ahead.draft(key, ids[1:], MAX_AHEAD, line.start(ids), 1)
        rows, usual = self._read([CanvasTokens(key, ids, [guess.token for guess in ahead])])
        if rows > FLAT_ROWS or not usual:  # it had to catch up, or prepared passes
            return ProposedToken(*line.proposals[0])
        held = 0
        while held < len(ahead) and line.proposals[held][0] == ahead[held].token:
            held += 1
        self._ahead.verified(ahead, held)
        return ProposedToken(*line.proposals[0], ms=(time.perf_counter() - began) * 1e3 / (1 + held))

    def _denoise(self) -> None:
        """Draft all slots of the round in parallel, if that is best."""
        masks, way = self._masks(), self._model.way
        if not masks:
            return
        began = time.perf_counter()
        self._read([CanvasTokens(key, ids) for key, ids in self._wanted.items()], masks)
        for step in range(MAX_STEPS - 1):
            runs = {key: run for key in self._wanted if (run := self._run(key))}
            probabilities = [[one.probability for one in run] for run in runs.values()]
            pays = way != "parallel" and self._round.again(probabilities, (time.perf_counter() - began) * 1e3, masks)
            if not runs or (not pays and (way != "refined" or step)):
                return
            self._denoise_again(runs, masks)

    def _denoise_again(self, runs: Mapping[Key, Sequence[DraftedToken]], masks: int) -> None:
        """Read the likely slots of every canvas as tokens, and mask the others again."""
        asked, first = list[CanvasTokens](), dict[Key, tuple[int, float]]()
        for key, run in runs.items():
            token, *ahead = [guess.token for guess in run[: confident([guess.probability for guess in run])]]
            asked.append(CanvasTokens(key, [*self._wanted[key], token], ahead))
            first[key] = self._lines[key].proposals[0]
        self._read(asked, masks)
        for key, proposed in first.items():
            self._lines[key].proposals.insert(0, proposed)

    def _masks(self) -> int:
        """How many mask rows the round's canvases get each; 0: it drafts one token after another."""
        assert self._model.transformer.masks is not None
        lines = [(self._line(key), ids) for key, ids in self._wanted.items()]
        unread = sum(len(ids) - min(common_prefix(line.track.ids, ids), len(ids) - 1) for line, ids in lines)
        ends = [self._start(gap) + len(ids) for (_, gap), ids in self._wanted.items()]
        most = min(self._model.transformer.masks.most, self._model.config.max_positions - max(ends))
        if most <= 0:
            return 0
        masks, rate = self._round.parallel(unread)
        if self._model.way in ("", "in turn"):
            self._costs.rounds += 1
            pays = rate > self._round.in_turn(self._costs.proposal_ms or self._model.costs.ms(1))
            if self._model.way or pays == (self._costs.rounds % TRY_AGAIN == FIRST_TRIAL):
                return 0
        return min(masks, most)

    @property
    def _round(self) -> Round:
        assert self._model.transformer.masks is not None
        usual, masks = self._rates.usual, self._model.transformer.masks.most
        masked = [usual("masked", slot) for slot in range(1, masks + 1)]
        return Round(self._costs, self._model.costs, len(self._wanted), usual("drafter"), masked)

    def _run(self, key: Key) -> list[DraftedToken]:
        """The slots drafted behind the tokens of a canvas, with their probabilities by how drafts have held.

        An end, or another token that is not drafted, ends the run.
        """
        ids, run = list(self._wanted[key]), list[DraftedToken]()
        while (found := self._lines[key].proposal(ids)) is not None and found.token not in self._specials:
            probability = self._rates.corrected(found.probability, found.source, found.slot)
            run.append(DraftedToken(found.token, probability, found.source, found.slot))
            ids.append(found.token)
        return run

    def _line(self, key: Key) -> ReadCanvas:
        if key not in self._lines:
            self._lines[key] = ReadCanvas(self._context.reader.new())
        return self._lines[key]

    def _start(self, gap: int) -> int:
        """The position of a fill's first token."""
        return sum(len(one.ids) for one in self._context.chain(gap))

    def _read(self, asked: Sequence[CanvasTokens], masks: int = 0) -> tuple[int, bool]:
        """One pass over what is asked, and so many mask rows behind each.

        Returns its rows, and whether it took the usual time.
        """
        reader, chains = self._context.reader, list[Chain]()
        for one in asked:
            chain, track = self._context.chain(one.key[1]), self._line(one.key).track
            track.become([*one.ids, *one.ahead], self._start(one.key[1]))
            track.forget_from(len(one.ids) - 1)  # the last token is read again, for its output
            chains.append([*chain, track])
        tails = [reader.new() for _ in asked if masks]
        for tail, chain in zip(tails, chains, strict=False):
            tail.become([-1 - mask for mask in range(masks)], chain[-1].start + len(chain[-1].ids))
        began, recorded = time.perf_counter(), self._model.transformer.recorded
        try:
            read = reader.read([*chains, *([*chain, tail] for chain, tail in zip(chains, tails, strict=False))])
        finally:
            for tail in tails:
                reader.drop(tail)
        rows, usual = sum(map(len, read.values())), self._model.transformer.recorded == recorded
        states = [read[chain[-1]] for chain in chains]
        last = [own[-1 - len(one.ahead) :] for own, one in zip(states, asked, strict=True)]
        found = iter(self._likeliest([*last, *(read[tail] for tail in tails)]))
        if usual:
            self._model.costs.saw_pass(rows, (time.perf_counter() - began) * 1e3, masked=masks > 0)
        for own, one in zip(states, asked, strict=True):
            line = self._lines[one.key]
            line.states, line.first = own, len(line.track.ids) - len(own)
            line.proposals, line.masked = next(found), []
        for one, _ in zip(asked, tails, strict=False):
            self._lines[one.key].masked = next(found)
        return rows, usual

    def _likeliest(self, states: Sequence[Tensor]) -> list[list[tuple[int, float]]]:
        """The likeliest tokens after several runs of states [n, H], with their probabilities, copied at once."""
        best, tokens = self._model.frequent_head(torch.cat(list(states))).float().softmax(-1).max(-1)
        copied = iter(torch.stack((tokens, best), dim=-1).tolist())  # ids are exact in float32
        return [[(int(token), likely) for token, likely in (next(copied) for _ in run)] for run in states]


def can_draft(smaller: LoadedFim, larger: LoadedFim) -> bool:
    """Whether both models have the same tokens."""
    one, other = smaller.tokenizer.vocabulary, larger.tokenizer.vocabulary
    common = common_prefix(one.tokens, other.tokens)  # padding may follow
    return one.fim == other.fim and common >= min(len(one.tokens), len(other.tokens)) and one.merges == other.merges
