"""The command ``readers``: the fills of one GGUF file, read by our own layers and by libllama, in turns.

Neither reader is exact to the last bit: our own layers store some tensors in 8 bits, libllama rounds otherwise for
another number of rows. So where two fills differ, the *margin* is taken: how many nats lie between the tokens that the
readers choose after what both have written, by the reader for which that is less. A small one is a tie. What a rule
cut off the fills counts as written: they may differ because the texts did there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import torch
from msgspec.structs import replace
from rich.table import Table
from torch import Tensor

from lacuna_model.core.context import heal
from lacuna_model.core.params import DecodeOptions, FillStats, InfillRequest, InfillResult
from lacuna_model.engine import Engine
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.text.diff import num_common

# Margins in nats below which a difference is a tie, from the strictest on.
TIES = (0.1, 0.25, 0.5)


class ReaderCost(msgspec.Struct, frozen=True):
    """What the fills of one reader took: passes, tokens, and milliseconds in all and for reading the context."""

    reader: str
    passes: int
    tokens: int
    ms: float
    encode_ms: float
    ms_p50: float
    ms_p95: float


class Differing(msgspec.Struct, frozen=True):
    """Two fills of one place that differ, in the order of the readers, with their margin (nats)."""

    fills: tuple[str, ...]
    margin: float


class ReadersReport(msgspec.Struct, frozen=True):
    """How many of the fills are equal, the others, and what each reader took."""

    fills: int
    equal: int
    differing: list[Differing]
    costs: list[ReaderCost]

    def ties(self, nats: float) -> int:
        """How many differing fills have a smaller margin."""
        return sum(one.margin < nats for one in self.differing)


@dataclass
class TwoReaders:
    """Collects fills of two models of the same tokens, request by request."""

    models: Sequence[LoadedFim]
    options: DecodeOptions = field(default_factory=DecodeOptions)
    _stats: list[list[FillStats]] = field(default_factory=list)
    _differing: list[Differing] = field(default_factory=list)

    def add(self, request: InfillRequest) -> None:
        """Fill the only gap of a request by both readers, each with an empty cache."""
        request = replace(request, options=self.options)
        engines = [Engine(model) for model in self.models]
        results, written = zip(*(_filled(engine, request) for engine in engines), strict=True)
        fills = tuple(result.fills[0] for result in results)
        self._stats.append([result.stats for result in results])
        if len(set(fills)) > 1:
            logits = [
                _after_shared(engine, model, request, written)
                for engine, model in zip(engines, self.models, strict=True)
            ]
            self._differing.append(Differing(fills, round(margin(*logits), 3)))

    def report(self) -> ReadersReport:
        """The figures so far."""
        columns = zip(*self._stats, strict=True)
        costs = [_cost(name, column) for name, column in zip(("own", "libllama"), columns, strict=True)]
        count = len(self._stats)
        return ReadersReport(count, count - len(self._differing), list(self._differing), costs)


def _cost(name: str, stats: Sequence[FillStats]) -> ReaderCost:
    times = [one.ms for one in stats]
    p50, p95 = np.percentile(times, [50, 95])
    return ReaderCost(
        name,
        passes=sum(one.nfe for one in stats),
        tokens=sum(one.tokens for one in stats),
        ms=round(sum(times), 1),
        encode_ms=round(sum(one.encode_ms for one in stats), 1),
        ms_p50=round(float(p50), 1),
        ms_p95=round(float(p95), 1),
    )


def _filled(engine: Engine, request: InfillRequest) -> tuple[InfillResult, str]:
    """The result of a request, and the longest text that its fill had before a rule ended it."""
    steps, longest = engine.stream(request), ""
    while True:
        try:
            longest = max(longest, "".join(next(steps).written), key=len)
        except StopIteration as end:
            return end.value, max(longest, end.value.fills[0], key=len)


@torch.inference_mode()
def _after_shared(engine: Engine, model: LoadedFim, request: InfillRequest, texts: Sequence[str]) -> Tensor:
    """The logits (V,) after the tokens that two texts of the gap share, of a reader that has filled the request."""
    before = request.text.encode()[: request.regions[0].start].decode()
    healed = heal(before, model.tokenizer)[1].decode()
    one, two = (model.tokenizer.encode(healed + text) for text in texts)
    shared = num_common(one, two)
    with engine.sessions.running(request.path) as session:
        context = session.cache
        assert isinstance(context, FimContext)
        chain, track = context.chain(0), context.reader.new()
        track.become([context.begins(0, model.fim.middle), *one[:shared]], sum(len(one.ids) for one in chain))
        states = context.reader.read([[*chain, track]])[track]
        logits = context.reader.logits(states)[-1]
        context.reader.drop(track)
    return logits


def margin(own: Tensor, other: Tensor) -> float:
    """How many nats lie between the best tokens of two readers' logits (V,), by the reader for which that is less.

    If the best token is the same, one of them chose another one for another number of rows: their next best.
    """
    mine, theirs = int(own.argmax()), int(other.argmax())
    if mine == theirs:
        return min(float(-logits.topk(2).values.diff()) for logits in (own, other))
    return min(float(abs(logits[mine] - logits[theirs])) for logits in (own, other))


def tables(found: ReadersReport) -> list[Table]:
    """The figures as tables: what each reader took, and how the fills differ."""
    costs = Table(title=f"{found.equal} of {found.fills} fills are equal")
    for name in ("reader", "passes", "tokens", "ms", "ms for contexts", "ms p50 / p95"):
        costs.add_column(name, justify="right")
    for one in found.costs:
        spread = f"{one.ms_p50:,.0f} / {one.ms_p95:,.0f}"
        costs.add_row(one.reader, str(one.passes), str(one.tokens), f"{one.ms:,.0f}", f"{one.encode_ms:,.0f}", spread)
    ties = Table(title="equal or tied")
    for nats in TIES:
        ties.add_column(f"below {nats} nats", justify="right")
    ties.add_row(*(f"{found.equal + found.ties(nats)} of {found.fills}" for nats in TIES))
    return [costs, ties]
