"""Passes that several requests share.

A pass over a few rows takes about as long as one over a single row, because its time goes into reading weights. So a
request announces what it wants read (:meth:`SharedPasses.announce`) and lets the others take their turn; the first one
that needs its result (:meth:`SharedPasses.read`) starts a pass over the rows of all that have announced theirs.

A row's result does not depend on the rows beside it, and every request has keys and values of its own, so what a
request reads is the same alone and beside others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from lacuna_model.fim.drafting.costs import PassCosts
from lacuna_model.fim.summaries import Digests, EndRule, Summaries, best
from lacuna_model.fim.tracks import Chain, Together, Track, TrackReader, beside_others
from lacuna_model.network.devices import HOST
from lacuna_model.network.graphs import PassRead
from lacuna_model.network.transformer import Network


@dataclass(frozen=True, slots=True)
class Outputs:
    """What is likeliest after each of some tokens, and the ``summaries`` of the first of them."""

    best: list[int]
    summaries: Summaries


@dataclass(frozen=True, slots=True)
class AskedChain:
    """A chain, and the ``rules`` for what may follow each of its last tokens: these have outputs.

    ``held`` says, of the likeliest tokens after them, how many are as drafted. On the host, summaries after the next
    one are left out; on another device, finding it would mean to wait for the pass.
    """

    chain: Chain
    rules: Sequence[EndRule]
    held: Callable[[Sequence[int]], int]


@dataclass(slots=True, eq=False)
class Wanted:
    """What one request wants read: ``found`` are the outputs, once they were read.

    The pass had ``beside`` rows of other requests.
    """

    reader: TrackReader
    asked: Sequence[AskedChain]
    found: list[Outputs] | None = None
    beside: int = 0

    @property
    def num_unread(self) -> int:
        """The rows of a pass over it."""
        return sum(track.num_unread for track in {track for asked in self.asked for track in asked.chain})


class SharedPasses:
    """The passes of one model. All calls come from one thread."""

    def __init__(self, transformer: Network, costs: PassCosts, digests: Digests) -> None:
        self._transformer = transformer
        self._costs = costs
        self._digests = digests
        self._waiting: dict[TrackReader, Wanted] = {}
        self._announced: set[TrackReader] = set()

    @property
    def is_awaited(self) -> bool:
        """Whether a request has announced what it wants read, and did not take the outputs yet."""
        return bool(self._announced)

    def announce(self, wanted: Wanted) -> None:
        """Let the next pass read ``wanted``, instead of what its reader has announced before.

        Its tracks must not change until :meth:`read` or :meth:`withdraw`.
        """
        self._waiting[wanted.reader] = wanted
        self._announced.add(wanted.reader)

    def withdraw(self, wanted: Wanted) -> None:
        """Do not read ``wanted`` any more, if it was not read yet."""
        self._announced.discard(wanted.reader)
        if self._waiting.get(wanted.reader) is wanted:
            del self._waiting[wanted.reader]

    @torch.inference_mode()
    def read(self, wanted: Wanted) -> list[Outputs]:
        """The outputs of ``wanted``, read now together with what was announced, if no pass has read it yet.

        A pass has no more rows than it is exact for: what does not fit into it waits on. Where the common pass fails,
        ``wanted`` is read alone, so that a request's error is its own.
        """
        self._announced.discard(wanted.reader)
        if wanted.found is None:
            self._waiting.pop(wanted.reader, None)
            if (most := self._transformer.exact_rows) is not None and wanted.num_unread > most:
                self._read_in_parts(wanted, most)
            else:
                self._read_beside_others(wanted)
        assert wanted.found is not None
        return wanted.found

    def _read_beside_others(self, wanted: Wanted) -> None:
        for one in beside_others(self._pass, wanted, self._fitting(wanted)):
            del self._waiting[one.reader]

    def _fitting(self, wanted: Wanted) -> list[Wanted]:
        """Those that wait and fit into a pass with ``wanted``, first come, first served."""
        if (most := self._transformer.exact_rows) is None:
            return list(self._waiting.values())
        room, found = most - wanted.num_unread, list[Wanted]()
        for one in self._waiting.values():
            if (rows := one.num_unread) <= room:
                room -= rows
                found.append(one)
        return found

    def _read_in_parts(self, wanted: Wanted, most: int) -> None:
        """Read chains that are too many for a pass in several, and the beginning of a long one before its end.

        The outputs of one chain, at most 64 of a text that is written again, fit into a pass.
        """
        left, found = list(wanted.asked), list[Outputs]()
        while left:
            parts = (Wanted(wanted.reader, left[:count]) for count in range(len(left), 1, -1))
            part = next((one for one in parts if one.num_unread <= most), Wanted(wanted.reader, left[:1]))
            while (over := part.num_unread - most) > 0:
                wanted.reader.read([asked.chain for asked in part.asked], min(over, most))
            self._pass([part])
            assert part.found is not None
            found += part.found
            left = left[len(part.asked) :]
        wanted.found = found

    def _pass(self, together: Sequence[Wanted]) -> None:
        began, recorded = perf_counter(), self._transformer.recorded
        rows = Together([(wanted.reader, [asked.chain for asked in wanted.asked]) for wanted in together])
        spans = rows.spans()
        try:
            pairs = zip(together, spans, strict=True)
            outputs = [(asked, _last(asked, own)) for wanted, own in pairs for asked in wanted.asked]
            early = [False] * len(rows)
            for asked, span in outputs:
                early[span] = [rule.early for rule in asked.rules]
            read = rows.read(self._transformer, early, self._digests)
            found, took = self._summarised(read, outputs, early, began)
        except BaseException:
            rows.forget()
            raise
        if self._transformer.recorded == recorded:  # a pass that records a graph takes longer than others
            self._costs.saw_pass(len(rows), took * 1e3, len(together), masks=rows.masks)
        each = iter(found)
        for wanted, own in zip(together, spans, strict=True):
            wanted.found = [next(each) for _ in wanted.asked]
            wanted.beside = len(rows) - sum(map(len, own.values()))

    def _summarised(
        self, read: PassRead, outputs: Sequence[tuple[AskedChain, slice]], early: Sequence[bool], began: float
    ) -> tuple[list[Outputs], float]:
        """The outputs, and the seconds that the pass took: on the host to its logits, elsewhere to the copy of all."""
        rules = [rule for asked, _ in outputs for rule in asked.rules]
        if read.logits is not None and read.kept is not None:
            self._narrow(read.logits, read.kept, [row for _, span in outputs for row in _rows(span)], rules)
            copied = np.array(read.kept.numpy(force=True))  # on a pretended device it would be the graph's memory
            found = [Outputs(best(copied[span]), copied[span]) for _, span in outputs]
            return found, perf_counter() - began
        states = torch.cat([read.states[span] for _, span in outputs])
        logits = self._transformer.head(states)
        took = perf_counter() - began
        flags = [flag for _, span in outputs for flag in early[span]]
        self._digests.restricted(logits, torch.tensor(flags, device=logits.device))
        for row, rule in zip(logits, rules, strict=True):
            if rule.narrow is not None:
                rule.narrow(row)
        sizes = [len(asked.rules) for asked, _ in outputs]
        if logits.device == HOST:
            parts = zip(outputs, logits.split_with_sizes(sizes), strict=True)
            return [self._on_host(asked, said) for (asked, _), said in parts], took
        summaries = np.split(self._digests.rows(logits).numpy(force=True), np.cumsum(sizes)[:-1])
        took = perf_counter() - began
        return [Outputs(best(rows), rows) for rows in summaries], took

    def _on_host(self, asked: AskedChain, logits: Tensor) -> Outputs:
        """The outputs of rows [n, V] that need not be copied: summaries up to the first that refuses a draft."""
        likeliest: list[int] = logits.argmax(-1).tolist()
        needed = logits[: asked.held(likeliest) + 1]
        return Outputs(likeliest, self._digests.rows(needed).numpy())

    def _narrow(self, logits: Tensor, kept: Tensor, rows: Sequence[int], rules: Sequence[EndRule]) -> None:
        """Make those of a graph's summaries again that have a further rule."""
        for row, rule in zip(rows, rules, strict=True):
            if rule.narrow is not None:
                rule.narrow(logits[row])
                kept[row : row + 1].copy_(self._digests.rows(logits[row : row + 1]))


def _rows(span: slice) -> range:
    return range(span.start, span.stop)


def _last(asked: AskedChain, spans: Mapping[Track, range]) -> slice:
    """The rows of the last tokens of a chain."""
    rows = spans[asked.chain[-1]]
    return slice(rows.stop - len(asked.rules), rows.stop)
