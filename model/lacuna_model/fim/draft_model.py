"""A smaller model of the same tokens drafts for a larger one (speculative decoding, arXiv 2211.17192).

It reads the same prompts into keys and values of its own. One pass over the last tokens of all fills and masks behind
them proposes all slots of all gaps at once (:mod:`.masked_passes`). Requests share these passes as they share those
that verify. Without mask rows it proposes the next token of each fill.

A long prompt that it has not read is read after the first pass of the model that verifies, with pauses in which other
requests have their turn: as much of it as pays within what is left to write.
"""

from collections.abc import Generator, Mapping, Sequence

import torch

from lacuna_model.decode.fill import Key
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.costs import DraftedToken
from lacuna_model.fim.drafts import WrittenFill
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.masked_passes import WantedSlots
from lacuna_model.fim.track import Chain, Track
from lacuna_model.text.diff import num_common

# A fill is expected to have so many tokens, or, once it has more than half of them, twice as many as it has.
EXPECTED = 24
# Before the first pass of the model that verifies, no more than so many missing tokens are read.
SOON_ROWS = 64


class DraftModel:
    """The drafts of one request by the smaller model of ``larger``, whose ``context`` has the request's prompts."""

    def __init__(self, larger: LoadedFim, context: FimContext) -> None:
        assert larger.smaller is not None
        assert context.smaller is not None
        self._model, self._context = larger.smaller, context.smaller
        self._passes, self._costs, self._rates = larger.passes, larger.costs, larger.rates
        self._tracks: dict[Key, Track] = {}
        self._wanted: WantedSlots | None = None
        self._rounds = 0

    def settle(self, fills: Sequence[Sequence[int]]) -> None:
        """Put the fills of the first gaps, as tokens, into the prompts of the later ones; empty: not filled yet."""
        self._context.settle(fills)

    @torch.inference_mode()
    def drafting(self, wanted: Mapping[Key, WrittenFill]) -> Generator[None, None, dict[Key, list[DraftedToken]]]:
        """Draft for fills, in one pass; called once a pass of the model that verifies. Returns the runs that it drafts.

        It pauses while it reads their prompts, and where there are other requests, so that they share the pass: those
        that are about to take what they have verified want drafts next.
        """
        self._rounds += 1
        if not wanted:
            return {}
        ready = yield from self._catching_up(wanted)
        keys = [key for key in wanted if key[1] in ready]
        if not keys:
            return {}
        chains = [self._chain(key, wanted[key].written) for key in keys]
        self._wanted = WantedSlots(self._context.reader, chains, self._holds)
        if self._passes.is_awaited or self._model.masked.is_awaited:
            self._model.masked.announce(self._wanted)
            yield
            if self._wanted.found is None and self._passes.is_awaited:
                yield
        found = self._model.masked.read(self._wanted, self._costs)
        self._wanted = None
        return {
            key: [DraftedToken(token, likely, "masked", slot) for slot, (token, likely) in enumerate(slots)]
            for key, slots in zip(keys, found, strict=True)
        }

    def withdraw(self) -> None:
        """Take back what was announced."""
        if self._wanted is not None:
            self._model.masked.withdraw(self._wanted)
            self._wanted = None

    @property
    def _holds(self) -> list[float]:
        """How likely the slots of a draft hold, each if all before it do."""
        return [self._rates.of_masks(slot) for slot in range(self._model.masked.slots)]

    def _catching_up(self, wanted: Mapping[Key, WrittenFill]) -> Generator[None, None, set[int]]:
        """Read what is missing of the prompts of gaps, where that pays; returns the gaps that can be drafted for."""
        saved_ms = self._model.masked.saved_ms(len(wanted), self._holds, self._costs)
        ready = set[int]()
        for gap in dict.fromkeys(gap for _, gap in wanted):
            if self._rounds == 1 and self._context.num_missing(gap) > SOON_ROWS:
                continue
            own = ((len(fill.written), fill.room) for key, fill in wanted.items() if key[1] == gap)
            expected = sum(min(max(EXPECTED - written, written), room) for written, room in own)
            worth_ms = expected * saved_ms + self._costs.spare_ms
            if (yield from self._context.catching_up(gap, worth_ms, self._model.costs)):
                ready.add(gap)
        return ready

    def _chain(self, key: Key, written: Sequence[int]) -> Chain:
        """The prompt of a fill and what is ``written`` of it, of which the last token is read again, for its output."""
        chain = self._context.chain(key[1])
        if key not in self._tracks:
            self._tracks[key] = self._context.reader.new()
        track, ids = self._tracks[key], [self._context.begins(key[1]), *written]
        track.become(ids, sum(len(one.ids) for one in chain))
        track.forget_from(len(ids) - 1)
        return [*chain, track]


def can_draft(smaller: LoadedFim, larger: LoadedFim) -> bool:
    """Whether both models have the same tokens."""
    one, other = smaller.tokenizer.vocabulary, larger.tokenizer.vocabulary
    common = num_common(one.tokens, other.tokens)  # padding may follow
    return one.fim == other.fim and common >= min(len(one.tokens), len(other.tokens)) and one.merges == other.merges
