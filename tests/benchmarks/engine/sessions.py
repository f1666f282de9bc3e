"""The command ``sessions``: fills of several documents at once, whose rows share passes or have passes of their own.

Sessions take turns of one step, as in the service's worker. All rows of the table fill the same gaps, and the fills are
compared: they are the same whatever runs beside them.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import msgspec
import numpy as np
from rich.table import Table
from tests.benchmarks.engine.contexts import contexts

from lacuna_model.core.params import DecodeOptions, InfillRequest, InfillResult, ReadContext, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.masked_passes import MaskedPasses, WantedSlots
from lacuna_model.fim.passes import SharedPasses, Wanted

SESSIONS = (1, 2, 4, 8)
CONTEXT_TOKENS = 512
# Enough for the contexts of all gaps.
CACHE_BYTES = 4 * 1024**3


class Served(msgspec.Struct, frozen=True):
    """The fills of so many ``sessions`` at once, with ``shared`` passes or without.

    ``passes`` counts those of all fills; a shared one counts once for each. Times are in milliseconds: ``ms`` until all
    gaps are filled, ``p50`` and ``p95`` of a fill, their contexts encoded before. ``differing`` counts the fills that
    are not those of one session alone.
    """

    sessions: int
    shared: bool
    fills: int
    tokens: int
    passes: int
    ms: float
    p50: float
    p95: float
    differing: int

    @property
    def tokens_a_s(self) -> float:
        """Tokens a second of all sessions together."""
        return self.tokens / self.ms * 1e3


class OwnDrafts(MaskedPasses):
    """Passes that each draft for one request."""

    def announce(self, wanted: WantedSlots) -> None:
        """Do nothing, so that no other request's pass drafts for ``wanted``."""


class OwnPasses(SharedPasses):
    """Passes that each read one request."""

    def announce(self, wanted: Wanted) -> None:
        """Do nothing, so that no other request's pass reads ``wanted``."""


def gaps(model: LoadedFim, count: int, max_tokens: int, *, syntax: bool) -> list[InfillRequest]:
    """``count`` gaps of a line in real code, each in a document of its own."""
    found = []
    for number, context in zip(range(count), contexts(model.tokenizer.encode, CONTEXT_TOKENS), strict=False):
        at = len(context.before.encode())
        region = Region(at, at, max_tokens=max_tokens)
        options = DecodeOptions(syntax=syntax)
        text = context.before + context.after
        found.append(InfillRequest(text, (region,), path=f"{number}.py", language="python", options=options))
    return found


def bench_sessions(
    model: LoadedFim, requests: Sequence[InfillRequest], *, advance: Callable[[], None] = lambda: None
) -> Iterator[Served]:
    """Fills all requests with each number of sessions, with shared passes and with own ones; yields the figures.

    Calls ``advance`` after each fill.
    """
    engine = Engine(model, cache_bytes=CACHE_BYTES)
    for request in requests:
        engine.fill(msgspec.structs.replace(request, task=ReadContext()))
    alone = replace(model, smaller=model.smaller and replace(model.smaller))
    if (small := alone.smaller) is not None:
        vars(small)["masked"] = OwnDrafts(small.transformer, small.frequent_head, small.costs)
    vars(alone)["passes"] = OwnPasses(model.transformer, model.costs, model.digests)
    expected: list[tuple[str, ...]] = []
    for sessions in SESSIONS:
        for shared in (False, True) if sessions > 1 else (False,):
            engine.model = model if shared else alone
            began = time.perf_counter()
            found = _filled(engine, requests, sessions, advance)
            ms = (time.perf_counter() - began) * 1e3
            fills = [result.fills for result, _ in found]
            expected = expected or fills
            p50, p95 = (float(np.percentile([one for _, one in found], share)) for share in (50, 95))
            yield Served(
                sessions=sessions,
                shared=shared,
                fills=len(fills),
                tokens=sum(result.stats.tokens + len(result.fills) for result, _ in found),  # ends are tokens, too
                passes=sum(result.stats.nfe for result, _ in found),
                ms=ms,
                p50=p50,
                p95=p95,
                differing=sum(one != other for one, other in zip(fills, expected, strict=True)),
            )


def _filled(
    engine: Engine, requests: Sequence[InfillRequest], sessions: int, advance: Callable[[], None]
) -> list[tuple[InfillResult, float]]:
    """The result of every request and its milliseconds; at most ``sessions`` of them run at the same time."""
    found: dict[int, tuple[InfillResult, float]] = {}
    waiting = deque(enumerate(requests))
    running = deque(_start(engine, waiting.popleft()) for _ in range(min(sessions, len(waiting))))
    while running:
        number, began, stream = running.popleft()
        try:
            next(stream)
        except StopIteration as end:
            found[number] = end.value, (time.perf_counter() - began) * 1e3
            advance()
            if waiting:
                running.append(_start(engine, waiting.popleft()))
        else:
            running.append((number, began, stream))
    return [found[number] for number in range(len(requests))]


def _start(engine: Engine, numbered: tuple[int, InfillRequest]) -> tuple[int, float, Iterator[object]]:
    number, request = numbered
    return number, time.perf_counter(), engine.stream(request)


def table(rows: Sequence[Served]) -> Table:
    """A table of the numbers of sessions."""
    grid = Table(title=f"{rows[0].fills} gaps, filled by so many sessions at once" if rows else "")
    for column in ("sessions", "passes are", "tokens a second", "p50 ms", "p95 ms", "passes", "tokens", "differing"):
        grid.add_column(column, justify="left" if column == "passes are" else "right")
    for row in rows:
        grid.add_row(
            *(str(row.sessions), "shared" if row.shared else "own", f"{row.tokens_a_s:.1f}"),
            *(f"{row.p50:,.0f}", f"{row.p95:,.0f}", str(row.passes), str(row.tokens), str(row.differing)),
        )
    return grid
