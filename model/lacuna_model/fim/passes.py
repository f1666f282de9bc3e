"""Passes that several requests share.

A pass over a few rows takes about as long as one over a single row, because its time goes into reading weights. So a
request announces what it wants read (:meth:`SharedPasses.announce`) and lets the others take their turn; the first one
that needs its result (:meth:`SharedPasses.read`) starts a pass over the rows of all that have announced theirs.

A row's result does not depend on the rows beside it, and every request has keys and values of its own, so what a
request reads is the same alone and beside others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from lacuna_model.fim.drafting.costs import PassCosts
from lacuna_model.fim.tracks import Chain, Track, TrackReader, read_together
from lacuna_model.network.devices import HOST
from lacuna_model.network.transformer import Transformer

# States [n, H] and logits [n, V] of n tokens.
Outputs = tuple[Tensor, Tensor]


@dataclass(slots=True, eq=False)
class Wanted:
    """What one request wants read: ``chains``, and of each the outputs of the last ``sizes`` tokens.

    ``found`` are those outputs once they were read, in a pass that had ``beside`` rows of other requests.
    """

    reader: TrackReader
    chains: Sequence[Chain]
    sizes: Sequence[int]
    found: list[Outputs] | None = None
    beside: int = 0


@dataclass(frozen=True, slots=True)
class Running:
    """A pass over ``rows`` rows of ``sharing`` requests, which began at ``began`` (seconds)."""

    began: float
    rows: int
    sharing: int


class SharedPasses:
    """The passes of one model. All calls come from one thread."""

    def __init__(self, transformer: Transformer, costs: PassCosts) -> None:
        self._transformer = transformer
        self._costs = costs
        self._waiting: dict[TrackReader, Wanted] = {}
        self._running: Running | None = None

    def announce(self, wanted: Wanted) -> None:
        """Let the next pass read ``wanted``, instead of what its reader has announced before.

        Its tracks must not change until :meth:`read` or :meth:`withdraw`.
        """
        self._waiting[wanted.reader] = wanted

    def withdraw(self, wanted: Wanted) -> None:
        """Do not read ``wanted`` any more, if it was not read yet."""
        if self._waiting.get(wanted.reader) is wanted:
            del self._waiting[wanted.reader]

    @torch.inference_mode()
    def read(self, wanted: Wanted) -> list[Outputs]:
        """The outputs of ``wanted``, read now together with all that was announced if no pass has read it yet.

        Where the common pass fails, ``wanted`` is read alone, so that a request's error is its own.
        """
        if wanted.found is None:
            others = [one for reader, one in self._waiting.items() if reader is not wanted.reader]
            self._waiting = {}
            try:
                self._pass([wanted, *others])
            except (MemoryError, RuntimeError):
                if not others:
                    raise
                self._waiting = {one.reader: one for one in others}
                self._pass([wanted])
        assert wanted.found is not None
        return wanted.found

    def arrived(self) -> None:
        """Learn what the last pass took, now that its outputs are known; on the host that is so when it returns.

        Another device works on after the call that starts a pass, so its reader says when it has copied what it needs.
        """
        if self._running is not None:
            took = perf_counter() - self._running.began
            self._costs.saw_pass(self._running.rows, took * 1e3, self._running.sharing)
            self._running = None

    def _pass(self, together: Sequence[Wanted]) -> None:
        began, recorded = perf_counter(), self._transformer.recorded
        hidden = read_together(self._transformer, [(wanted.reader, wanted.chains) for wanted in together])
        states = [_last(wanted, read) for wanted, read in zip(together, hidden, strict=True)]
        flat = [rows for own in states for rows in own]
        logits = iter(self._transformer.head(torch.cat(flat)).split_with_sizes([len(rows) for rows in flat]))
        counts = [sum(map(len, read.values())) for read in hidden]
        usual = self._transformer.recorded == recorded  # a pass that records a graph takes longer than others
        self._running = Running(began, sum(counts), len(together)) if usual else None
        if self._transformer.final_norm.device == HOST:
            self.arrived()
        for wanted, own, count in zip(together, states, counts, strict=True):
            wanted.found = [(rows, next(logits)) for rows in own]
            wanted.beside = sum(counts) - count


def _last(wanted: Wanted, hidden: dict[Track, Tensor]) -> list[Tensor]:
    """The states [n, H] of the last tokens of every chain."""
    return [hidden[chain[-1]][-size:] for chain, size in zip(wanted.chains, wanted.sizes, strict=True)]
