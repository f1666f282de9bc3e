"""The command ``drafts``: what drafting is worth: tokens a pass, and the time of a fill, by where drafts come from.

Each request is filled without drafts, with those of the project, with those of masks (of a smaller model, or of the
model itself), and with both. Greedy fills do not depend on drafts; a fill that differs is counted.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

import msgspec
import numpy as np
from rich.table import Table

from lacuna_model.core.context import finished
from lacuna_model.core.params import DecodeOptions, InfillRequest, ReadContext, Snapshot
from lacuna_model.decode.snapshots import shown
from lacuna_model.engine import Engine
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.drafting.costs import AcceptanceRates, PassCosts
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.measuring import first_costs

Arm = Literal["none", "project", "masks", "both"]
ARMS: tuple[Arm, ...] = get_args(Arm)
_BY_MODELS = {"masks", "both"}
# Passes are counted by the tokens that they commit; those with so many or more are one kind.
MAX_COUNTED = 5
# Slots of a draft whose acceptance is shown.
SLOTS = 8


class Drafted(msgspec.Struct, frozen=True):
    """The fills of one arm in one language ("" is all): passes, committed tokens, and times in milliseconds.

    The context is encoded before. ``commits`` maps a number of tokens to the passes that committed so many (the last:
    so many or more). ``accepted`` has, for each slot of a draft, the share of right tokens among those verified.
    ``differing`` counts fills that differ from those of the first arm. The smaller model made so many ``drafting``
    passes. Of requests with several gaps, ``at_once`` are the passes, and ``longest`` those of each one's longest gap
    alone; 0 where that was not asked for.
    """

    language: str
    arm: Arm
    fills: int
    passes: int
    tokens: int
    commits: dict[int, int]
    accepted: tuple[float, ...]
    differing: int
    ms: float
    p50: float
    p95: float
    drafting: int = 0
    at_once: int = 0
    longest: int = 0

    @property
    def tokens_a_pass(self) -> float:
        """The tokens that a pass commits, on average over all passes."""
        return self.tokens / max(self.passes, 1)

    @property
    def tokens_a_second(self) -> float:
        """The tokens of a second of drafting and verifying."""
        return self.tokens / max(self.ms, 1e-3) * 1e3


class Benchmark(msgspec.Struct, frozen=True):
    """The arms' figures, over all languages and by language, and the median milliseconds of a pass by its rows.

    ``drafting_ms`` are those of the smaller model's passes.
    """

    drafts: tuple[Drafted, ...]
    pass_ms: dict[int, float]
    drafting_ms: dict[int, float]


class _One(msgspec.Struct):
    fills: tuple[str, ...]
    passes: int
    tokens: int
    commits: list[int]
    asked: Counter[int]
    right: Counter[int]
    ms: float
    drafting: int
    longest: int = 0


class _Timed(PassCosts):
    """Keeps the milliseconds of every pass, by its rows."""

    def __init__(self, times: dict[int, list[float]]) -> None:
        super().__init__()
        self._times = times
        self.count = 0

    def saw_pass(self, rows: int, ms: float, sharing: int = 1, *, masks: int = 0) -> None:
        super().saw_pass(rows, ms, sharing, masks=masks)
        self._times[rows].append(ms)
        self.count += 1


def bench_drafts(
    model: LoadedFim,
    requests: Sequence[InfillRequest],
    *,
    arms: Sequence[Arm] = ARMS,
    syntax: bool = False,
    together: bool = False,
    alone: bool = False,
    advance: Callable[[], None] = lambda: None,
) -> Benchmark:
    """Fills every request in each of the ``arms`` that the model has; calls ``advance`` after each fill.

    With ``together`` the arms share the contexts that they have read, and what they learn. With ``alone`` the gaps of a
    request are also filled by themselves.
    """
    arms = [arm for arm in arms if arm in arms_of(model)]
    times, drafting = defaultdict[int, list[float]](list), defaultdict[int, list[float]](list)
    shared = _engine(model, times, drafting) if together else None
    engines = {arm: shared or _engine(model, times, drafting) for arm in arms}
    found: dict[Arm, list[_One]] = {arm: [] for arm in arms}
    for number, request in enumerate(requests):
        for arm in _turned(arms, number):  # no arm always comes first
            prior, drafter = arm in ("project", "both"), arm in _BY_MODELS
            options = DecodeOptions(prior=prior, drafter=drafter, syntax=syntax)
            one = _fill(engines[arm], request, options)
            if alone and len(request.regions) > 1:
                each = [msgspec.structs.replace(request, regions=(region,)) for region in request.regions]
                one.longest = max(_fill(engines[arm], own, options).passes for own in each)
            found[arm].append(one)
            advance()
    rows = tuple(_by_language(found, [request.language for request in requests]))
    return Benchmark(rows, _medians(times), _medians(drafting))


def arms_of(model: LoadedFim) -> list[Arm]:
    """The arms that a model has."""
    drafts = model.smaller is not None or model.transformer.masks is not None
    return [arm for arm in ARMS if drafts or arm not in _BY_MODELS]


def _engine(model: LoadedFim, times: dict[int, list[float]], drafting: dict[int, list[float]]) -> Engine:
    smaller = model.smaller and replace(model.smaller, costs=_Timed(drafting))
    measured = replace(model, costs=_Timed(times), rates=AcceptanceRates(), smaller=smaller)
    for one in (measured, smaller):
        if one is not None:
            first_costs(one)
    return Engine(measured)


def _medians(times: Mapping[int, Sequence[float]]) -> dict[int, float]:
    return {rows: round(float(np.median(ms)), 2) for rows, ms in sorted(times.items())}


def _turned(arms: Sequence[Arm], by: int) -> list[Arm]:
    at = by % len(arms)
    return [*arms[at:], *arms[:at]]


def _fill(engine: Engine, request: InfillRequest, options: DecodeOptions) -> _One:
    """One fill, its context encoded before; ``commits`` are the tokens that each pass committed."""
    engine.fill(msgspec.structs.replace(request, options=options, task=ReadContext()))
    asked, right = _verified(engine, request)
    commits: list[int] = []
    passes, seen = 0, 0

    def count(snapshot: Snapshot) -> Snapshot:
        nonlocal passes, seen
        if snapshot.nfe > passes:
            committed = sum(slot.state == "committed" for gap in snapshot.slots for slot in gap)
            # The end of a gap is a token, too, which shows in no slot.
            commits.append(max(committed - seen, 1))
            passes, seen = snapshot.nfe, committed
        return snapshot

    before, began = _drafting(engine), time.perf_counter()
    result = finished(shown(engine.stream(msgspec.structs.replace(request, options=options)), count))
    ms = (time.perf_counter() - began) * 1e3
    tokens = result.stats.tokens + len(request.regions)  # the end of a gap is one, too
    asked_after, right_after = _verified(engine, request)
    drafting = _drafting(engine) - before
    return _One(result.fills, result.stats.nfe, tokens, commits, asked_after - asked, right_after - right, ms, drafting)


def _drafting(engine: Engine) -> int:
    """How many passes the smaller model has made."""
    smaller = engine.model.smaller if isinstance(engine.model, LoadedFim) else None
    return smaller.costs.count if smaller is not None and isinstance(smaller.costs, _Timed) else 0


def _verified(engine: Engine, request: InfillRequest) -> tuple[Counter[int], Counter[int]]:
    """How many draft tokens of a request's document were verified so far, and how many were right, by slot."""
    with engine.sessions.running(request.path) as session:
        assert isinstance(session.cache, FimContext)
        rates = session.cache.rates
        return rates.asked.copy(), rates.right.copy()


def _by_language(found: Mapping[Arm, Sequence[_One]], languages: Sequence[str]) -> Iterator[Drafted]:
    """The figures over all languages, then, where there are several, those of each."""
    names = list(dict.fromkeys(languages))
    first = next(iter(found.values()))
    for name in ["", *names] if len(names) > 1 else [""]:
        places = [place for place, language in enumerate(languages) if name in ("", language)]
        for arm, ones in found.items():
            yield _figures(name, arm, [ones[place] for place in places], [first[place] for place in places])


def _figures(language: str, arm: Arm, own: Sequence[_One], first: Sequence[_One]) -> Drafted:
    counts = Counter(min(number, MAX_COUNTED) for one in own for number in one.commits)
    asked, right = Counter[int](), Counter[int]()
    for one in own:
        asked.update(one.asked)
        right.update(one.right)
    times = [one.ms for one in own]
    p50, p95 = (float(np.percentile(times, share)) for share in (50, 95))
    return Drafted(
        language=language,
        arm=arm,
        fills=len(own),
        passes=sum(one.passes for one in own),
        tokens=sum(one.tokens for one in own),
        commits=dict(sorted(counts.items())),
        accepted=tuple(right[slot] / asked[slot] for slot in sorted(asked)),
        differing=sum(one.fills != other.fills for one, other in zip(own, first, strict=True)),
        ms=sum(times),
        p50=p50,
        p95=p95,
        drafting=sum(one.drafting for one in own),
        at_once=sum(one.passes for one in own if one.longest),
        longest=sum(one.longest for one in own),
    )


def table(found: Benchmark) -> Table:
    """A table of the arms, and the milliseconds of a pass by its rows."""
    shown, drafting = (
        ", ".join(f"{rows}: {ms:.0f}" for rows, ms in times.items()) for times in (found.pass_ms, found.drafting_ms)
    )
    caption = f"ms of a pass by rows: {shown}" + (f"; of the smaller model: {drafting}" if drafting else "")
    grid = Table(title="Drafts", caption=caption)
    words = ("language", "drafts")
    shares = [f"{n}{'+' * (n == MAX_COUNTED)}" for n in range(1, MAX_COUNTED + 1)]
    for column in (
        *(*words, "tokens a pass", *shares, "accepted by slot", "drafting passes a pass", "tokens/s", "ms p50", "p95"),
        *("times as fast", "passes of gaps at once", "differing"),
    ):
        grid.add_column(column, justify="left" if column in words else "right")
    base = dict[str, float]()
    for one in found.drafts:
        total = max(sum(one.commits.values()), 1)
        counted = [f"{one.commits.get(n, 0) / total:.0%}" for n in range(1, MAX_COUNTED + 1)]
        accepted = " ".join(f"{share * 100:.0f}" for share in one.accepted[:SLOTS])
        speed = f"{base.setdefault(one.language, one.ms) / one.ms:.2f}x"
        grid.add_row(
            *(one.language or "all", one.arm, f"{one.tokens_a_pass:.2f}", *counted, accepted),
            *(f"{one.drafting / max(one.passes, 1):.2f}", f"{one.tokens_a_second:.1f}"),
            *(f"{one.p50:,.0f}", f"{one.p95:,.0f}", speed),
            *(f"{one.at_once / one.longest:.2f}x" if one.longest else "", f"{one.differing} of {one.fills}"),
        )
    return grid
