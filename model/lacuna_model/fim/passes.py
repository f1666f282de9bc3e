"""Passes over fills, which several requests share, and over contexts, piece by piece.

A pass over a few rows takes about as long as one over a single row, because its time goes into reading weights. So a
request announces what it wants read (:meth:`SharedPasses.announce`) and lets the others take their turn; the first one
that needs its result (:meth:`SharedPasses.read`) starts a pass over the rows of all that have announced theirs.

A device that works beside the host is given the pass as soon as it is announced (:meth:`SharedPasses.begin`), once
those that the last pass was for have announced theirs, too.

A row's result does not depend on the rows beside it, and every request has keys and values of its own, so what a
request reads is the same alone and beside others.

A piece of a context (:class:`ContextPieces`) has few rows on a CPU: their activations stay in its cache. A GPU reads
thousands in about the time of a few, so it takes as many as keep the wait of a request that arrives meanwhile short.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from time import perf_counter

import torch
from torch import Tensor

from lacuna_kernels import likeliest
from lacuna_model.fim.costs import PassCosts
from lacuna_model.fim.track import Chain, Digests, EndRule, Summaries, num_unread
from lacuna_model.fim.tracks import Together, TrackReader, beside_others
from lacuna_model.network.devices import HOST
from lacuna_model.network.gpu_layers import PassRead
from lacuna_model.network.transformer import Network

# The part of a pass's time that tells whether the host was late for its outputs, or had to wait for them.
NOTICED = 1 / 8


@dataclass(frozen=True, slots=True)
class AskedChain:
    """A chain, and the ``rules`` for what may follow each of its last tokens: these have outputs.

    ``held`` says, of the likeliest tokens after them, how many are as drafted. On the host, summaries after the next
    one are left out; on another device, finding it would mean to wait for the pass.
    """

    chain: Chain
    rules: Sequence[EndRule]
    held: Callable[[Sequence[int]], int]


# What is asked for of a pass, and its rows.
Outputs = Sequence[tuple[AskedChain, slice]]


@dataclass(slots=True, eq=False)
class Wanted:
    """What one request wants read: ``found`` are the outputs, once they were read.

    The pass that is ``under_way`` on a device will find them. It has ``beside`` rows of other requests.
    """

    reader: TrackReader
    asked: Sequence[AskedChain]
    found: list[Summaries] | None = None
    under_way: "PassUnderWay | None" = None
    beside: int = 0

    @property
    def has_begun(self) -> bool:
        """Whether its pass was begun."""
        return self.found is not None or self.under_way is not None

    @property
    def num_unread(self) -> int:
        """The rows of a pass over it."""
        return num_unread(asked.chain for asked in self.asked)


@dataclass(slots=True, eq=False)
class PassUnderWay:
    """A pass that a device was given: the ``summaries`` [n, width] there, and the ``spans`` of what is asked for.

    ``began`` and ``given`` are the seconds when the host began to put it together, and when it had. ``saw`` learns from
    the seconds that it takes.
    """

    together: Sequence[Wanted]
    summaries: Tensor
    spans: Sequence[slice]
    began: float
    given: float
    saw: Callable[[float], object]

    def end(self) -> None:
        """Wait for the outputs, and let all that they are for have them.

        Where the host did other things meanwhile, and then hardly had to wait, nobody knows when the device was ready.
        """
        asked = perf_counter()
        copied = self.summaries.numpy(force=True)
        ended = perf_counter()
        noticed = NOTICED * (ended - self.began)
        if asked - self.given <= noticed or ended - asked >= noticed:
            self.saw(ended - self.began)
        outputs = (copied[span] for span in self.spans)
        for wanted in self.together:
            wanted.found = [next(outputs) for _ in wanted.asked]


class SharedPasses:
    """The passes of one model, which may go on beside the host. All calls come from one thread."""

    def __init__(self, transformer: Network, costs: PassCosts, digests: Digests) -> None:
        self._transformer = transformer
        self._costs = costs
        self._digests = digests
        self.is_asynchronous = transformer.is_asynchronous
        self._announced: dict[TrackReader, Wanted] = {}  # what was not taken yet, in the order in which it came
        self._expected: set[TrackReader] = set()  # those that a pass was for, and that have announced nothing since

    @property
    def is_awaited(self) -> bool:
        """Whether a request has announced what it wants read, and did not take the outputs yet."""
        return bool(self._announced)

    @property
    def is_expecting(self) -> bool:
        """Whether requests for which a device was waited for are about to announce what comes next."""
        return bool(self._expected)

    def announce(self, wanted: Wanted) -> None:
        """Let the next pass read ``wanted``, instead of what its reader has announced before.

        Its tracks must not change until :meth:`read` or :meth:`withdraw`.
        """
        self.withdraw(wanted.reader)
        self._announced[wanted.reader] = wanted

    def withdraw(self, reader: TrackReader) -> None:
        """Let no pass read what a reader has announced, and expect nothing of it."""
        self._announced.pop(reader, None)
        self._expected.discard(reader)

    @torch.inference_mode()
    def begin(self, wanted: Wanted) -> None:
        """Give the device the pass over ``wanted`` and what was announced, and do not wait for it.

        While the device is at a pass, that would be too early: others may announce more until it has ended.
        """
        if not (wanted.has_begun or self._is_busy or self._is_too_wide(wanted)):
            beside_others(self._pass, wanted, self._fitting(wanted))

    @torch.inference_mode()
    def read(self, wanted: Wanted) -> list[Summaries]:
        """The outputs of ``wanted``, read now together with what was announced, if no pass has read it yet.

        A pass has no more rows than it is exact for: what does not fit into it waits on. Where the common pass fails,
        ``wanted`` is read alone, so that a request's error is its own.
        """
        if not wanted.has_begun:
            if self._is_too_wide(wanted):
                self._read_in_parts(wanted)
            else:
                beside_others(self._pass, wanted, self._fitting(wanted))
        found = self._found(wanted)
        self._announced.pop(wanted.reader, None)
        return found

    def _found(self, wanted: Wanted) -> list[Summaries]:
        """The outputs of what was read, or is being read."""
        if wanted.found is None:
            assert wanted.under_way is not None
            wanted.under_way.end()
            assert wanted.found is not None
            self._expected |= {
                one.reader for one in wanted.under_way.together if self._announced.get(one.reader) is one
            }
        return wanted.found

    @property
    def _is_busy(self) -> bool:
        """Whether a device is at a pass whose outputs somebody needs."""
        awaited = self._announced.values() if self.is_asynchronous else ()
        return any(one.under_way is not None and one.found is None for one in awaited)

    def _is_too_wide(self, wanted: Wanted) -> bool:
        most = self._transformer.exact_rows
        return most is not None and wanted.num_unread > most

    def _fitting(self, wanted: Wanted) -> list[Wanted]:
        """Those that wait and fit into a pass with ``wanted``, first come, first served."""
        waiting = [one for one in self._announced.values() if one is not wanted and not one.has_begun]
        if (most := self._transformer.exact_rows) is None:
            return waiting
        room, found = most - wanted.num_unread, list[Wanted]()
        for one in waiting:
            if (rows := one.num_unread) <= room:
                room -= rows
                found.append(one)
        return found

    def _read_in_parts(self, wanted: Wanted) -> None:
        """Read chains that are too many for a pass in several, and the beginning of a long one before its end.

        The outputs of one chain, at most 64 of a text that is written again, fit into a pass.
        """
        left, found, most = list(wanted.asked), list[Summaries](), self._transformer.exact_rows
        assert most is not None
        while left:
            parts = (Wanted(wanted.reader, left[:count]) for count in range(len(left), 1, -1))
            part = next((one for one in parts if one.num_unread <= most), Wanted(wanted.reader, left[:1]))
            while (over := part.num_unread - most) > 0:
                wanted.reader.read([asked.chain for asked in part.asked], min(over, most))
            self._pass([part])
            found += self._found(part)
            left = left[len(part.asked) :]
        wanted.found = found

    def _pass(self, together: Sequence[Wanted]) -> None:
        """One pass. On the host it ends with the outputs; a device is given it, and goes on with it."""
        began, waits = perf_counter(), self._is_busy
        with Together.of((one.reader, [asked.chain for asked in one.asked]) for one in together) as rows:
            spans = rows.spans()
            pairs = zip(together, spans, strict=True)
            ends = [(asked, own[asked.chain[-1]].stop) for wanted, own in pairs for asked in wanted.asked]
            outputs = [(asked, slice(stop - len(asked.rules), stop)) for asked, stop in ends]
            early = [False] * len(rows)
            for asked, span in outputs:
                early[span] = [rule.early for rule in asked.rules]
            read = rows.read(self._transformer, early, self._digests)

            # One that records a graph takes longer than others, and so does one that waits for another.
            is_usual = not (waits or read.recorded)

            def saw(seconds: float) -> None:
                if is_usual:
                    self._costs.saw_pass(len(rows), seconds * 1e3, len(together), masks=rows.masks)

            if read.kept is None and not self.is_asynchronous:
                logits, at = self._restricted(read, outputs)
                saw(at - began)
                found = self._outputs(logits, outputs)
                for wanted in together:
                    wanted.found = [next(found) for _ in wanted.asked]
            else:
                summaries, places = self._summaries(read, outputs)
                under_way = PassUnderWay(together, summaries, places, began, perf_counter(), saw)
                for wanted in together:
                    wanted.under_way = under_way
        for wanted, own in zip(together, spans, strict=True):
            wanted.beside = len(rows) - sum(span.stop - span.start for span in own.values())

    def _outputs(self, logits: Tensor, outputs: Outputs) -> Iterator[Summaries]:
        """The outputs of a pass on the host: of each chain, those up to the first that refuses a draft."""
        parts = logits.split_with_sizes([len(asked.rules) for asked, _ in outputs])
        for (asked, _), said in zip(outputs, parts, strict=True):
            yield self._digests.rows(said[: asked.held(likeliest(said).tolist()) + 1]).numpy()

    def _summaries(self, read: PassRead, outputs: Outputs) -> tuple[Tensor, list[slice]]:
        """The summaries [n, width] that a device will have, and the place of each output among them."""
        if read.logits is not None and read.kept is not None:
            for asked, span in outputs:
                for row, rule in enumerate(asked.rules, span.start):
                    if rule.narrow is not None:  # its summary is made again
                        rule.narrow(read.logits[row])
                        read.kept[row : row + 1].copy_(self._digests.rows(read.logits[row : row + 1]))
            return read.kept.clone(), [span for _, span in outputs]  # the next pass has the graph's memory
        logits, _ = self._restricted(read, outputs)
        ends = [0, *accumulate(len(asked.rules) for asked, _ in outputs)]
        return self._digests.rows(logits), [slice(*pair) for pair in pairwise(ends)]

    def _restricted(self, read: PassRead, outputs: Outputs) -> tuple[Tensor, float]:
        """The logits [n, V] of all outputs, without what cannot come next, and the second when they were there."""
        logits = self._transformer.head(torch.cat([read.states[span] for _, span in outputs]))
        at, rules = perf_counter(), [rule for asked, _ in outputs for rule in asked.rules]
        early = torch.tensor([rule.early for rule in rules])
        self._digests.restricted(logits, early.to(logits.device, non_blocking=True))
        for row, rule in zip(logits, rules, strict=True):
            if rule.narrow is not None:
                rule.narrow(row)
        return logits, at


# Rows of a piece on a CPU.
CPU_ROWS = 128
# On another device: the rows of a piece at first and at least, and the milliseconds that a piece should take at most.
WIDE_ROWS, LEAST_ROWS = 2048, 64
PIECE_MS = 50.0


class ContextPieces:
    """The pieces in which one model's contexts are read on a ``device``.

    ``rows`` are those of a piece, at most.
    """

    def __init__(self, device: torch.device, *, whole: bool = False) -> None:
        """``whole``: a pass cannot pause, wherever it is made."""
        self._whole = whole
        self._adapts = whole or device != HOST
        self.rows = WIDE_ROWS if device != HOST else CPU_ROWS

    def reading(
        self, reader: TrackReader, chains: Sequence[Chain], most: int | None = None
    ) -> Generator[None, None, None]:
        """Read the next piece of the chains, of at most ``most`` rows; on a CPU with pauses between its layers.

        A device that works on after the call is waited for: else all pieces would be queued there before any request
        that arrives meanwhile.
        """
        rows = self.rows if most is None else min(self.rows, most)
        if not self._adapts:
            yield from reader.reading(chains, rows)
            return
        began = perf_counter()
        if self._whole:
            unread = num_unread(chains)
            yield from reader.reading(chains, rows)
            self.took(min(rows, unread), (perf_counter() - began) * 1e3)
            return
        read = reader.read(chains, rows)
        if read:
            next(iter(read.values()))[-1, 0].item()
            count, ms = sum(map(len, read.values())), (perf_counter() - began) * 1e3
            self.took(count, ms)
            reader.costs.saw_reading(count, ms)

    def took(self, rows: int, ms: float) -> None:
        """Learn that a piece of ``rows`` rows took so many milliseconds."""
        if ms > PIECE_MS and rows > LEAST_ROWS:
            self.rows = max(min(self.rows, rows) // 2, LEAST_ROWS)
        elif rows >= self.rows and ms < PIECE_MS / 2:
            self.rows = min(self.rows * 2, WIDE_ROWS)
