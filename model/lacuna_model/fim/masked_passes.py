"""The passes in which a smaller model drafts: one for the fills of all requests that wait for drafts.

Each reads the last token of every fill, and masks behind it: the likeliest token after that one and after each mask is
the draft (parallel drafting, as PARD does, arXiv 2504.18583). Masks and their keys and values are forgotten afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

import torch
from torch import Tensor

from lacuna_kernels import likeliest
from lacuna_model.fim.costs import PassCosts, Round
from lacuna_model.fim.track import Chain, Track, num_unread
from lacuna_model.fim.tracks import Together, TrackReader, beside_others
from lacuna_model.network.transformer import Network

# A token and its probability, for each slot of a draft.
Slots = list[tuple[int, float]]


@dataclass(slots=True, eq=False)
class WantedSlots:
    """The fills that one request wants drafts for: the ``chains`` up to their last tokens, which are unread.

    ``holds`` says how likely the slots of a fill hold, each if all before it do. ``found`` are the drafts of the
    chains, once they were made.
    """

    reader: TrackReader
    chains: Sequence[Chain]
    holds: Sequence[float]
    found: list[Slots] | None = None


@dataclass(slots=True, eq=False)
class MaskedPasses:
    """The passes of one model that drafts; ``costs`` learn what they take.

    All calls come from one thread.
    """

    transformer: Network
    costs: PassCosts
    _waiting: dict[TrackReader, WantedSlots] = field(default_factory=dict)

    @property
    def slots(self) -> int:
        """How many slots a pass drafts for a fill, at most."""
        return 1 if self.transformer.masks is None else 1 + len(self.transformer.masks)

    @property
    def is_awaited(self) -> bool:
        """Whether a request waits for drafts."""
        return bool(self._waiting)

    def announce(self, wanted: WantedSlots) -> None:
        """Let the next pass draft for ``wanted``; its tracks must not change until :meth:`read` or :meth:`withdraw`."""
        self._waiting[wanted.reader] = wanted

    def withdraw(self, wanted: WantedSlots) -> None:
        """Do not draft for ``wanted`` any more."""
        if self._waiting.get(wanted.reader) is wanted:
            del self._waiting[wanted.reader]

    def saved_ms(self, fills: int, holds: Sequence[float], verifier: PassCosts) -> float:
        """What drafts save for a token of so many fills whose contexts are read, in milliseconds; inf: not known."""
        _, saved = Round(verifier, self.costs, [holds] * fills, fills).best(self.slots)
        return saved

    @torch.inference_mode()
    def read(self, wanted: WantedSlots, verifier: PassCosts) -> list[Slots]:
        """The drafts for ``wanted``, made now together with all that was announced, if they were not made yet.

        There are none where they seem not to pay, by what the passes of the model that verifies cost.
        """
        if wanted.found is None:
            self._waiting.pop(wanted.reader, None)
            others = list(self._waiting.values())
            for one in beside_others(lambda together: self._draft(together, verifier), wanted, others):
                del self._waiting[one.reader]
        assert wanted.found is not None
        return wanted.found

    def _draft(self, together: Sequence[WantedSlots], verifier: PassCosts) -> None:
        holds = [one.holds for one in together for _ in one.chains]
        own = Round(verifier, self.costs, holds, sum(num_unread(one.chains) for one in together))
        slots, saved = own.best(self.slots)
        if not saved:
            slots = self.slots
            if not verifier.looks(own.alone_ms, own.drafting_ms(slots)):
                for one in together:
                    one.found = [[] for _ in one.chains]
                return
        self.draft(together, slots - 1)

    @torch.inference_mode()
    def draft(self, together: Sequence[WantedSlots], masks: int) -> None:
        """One pass over the last tokens of all chains, and so many masks behind each, whatever it costs."""
        tails = [[self._tail(chain, masks) for chain in one.chains] for one in together]
        began = perf_counter()
        asked = [
            (one.reader, [*one.chains, *([*chain, tail] for chain, tail in zip(one.chains, own, strict=True))])
            for one, own in zip(together, tails, strict=True)
        ]
        with Together.of(asked) as rows:
            read = rows.read(self.transformer)
        parts = [
            torch.cat((read.states[span[chain[-1]].stop - 1 :][:1], read.states[span.get(tail, slice(0, 0))]))
            for one, own, span in zip(together, tails, rows.spans(), strict=True)
            for chain, tail in zip(one.chains, own, strict=True)
        ]
        drafted = iter(self._likeliest(parts))
        if not read.recorded:  # a pass that records a graph takes longer than others
            self.costs.saw_pass(len(rows), (perf_counter() - began) * 1e3, masks=rows.masks)
        for one in together:
            one.found = [next(drafted) for _ in one.chains]

    def _tail(self, chain: Chain, masks: int) -> Track:
        """A track of so many masks behind a chain, or of those that there are positions for; its rows are not kept."""
        found, end = Track(), chain[-1].start + len(chain[-1].ids)
        found.become([-1 - mask for mask in range(min(masks, self.transformer.config.max_positions - end))], end)
        return found

    def _likeliest(self, states: Sequence[Tensor]) -> list[Slots]:
        """The likeliest tokens after several runs of states [n, H], with their probabilities, copied at once."""
        probabilities = self.transformer.head(torch.cat(list(states))).float().softmax(-1)
        tokens = likeliest(probabilities)[:, None]
        copied = iter(torch.cat((tokens, probabilities.gather(1, tokens)), dim=1).tolist())  # ids are exact in float32
        return [[(int(token), likely) for token, likely in (next(copied) for _ in run)] for run in states]
