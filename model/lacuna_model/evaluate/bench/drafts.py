"""``lacuna bench drafts``: what drafting is worth: tokens a pass, and the time of a fill, by where drafts come from.

Each request is filled without drafts, with those of the project, with the drafter's, and with both. Greedy fills do not
depend on drafts; a fill that differs is counted.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, get_args

import msgspec
import numpy as np
from rich.table import Table

from lacuna_model.core.context import finished
from lacuna_model.core.params import DecodeOptions, InfillRequest, Snapshot
from lacuna_model.decode.snapshots import shown
from lacuna_model.engine import Engine
from lacuna_model.fim.loading import LoadedFim

Arm = Literal["no drafts", "project", "drafter", "both"]
ARMS: tuple[Arm, ...] = get_args(Arm)
# Passes are counted by the tokens that they commit; those with so many or more are one kind.
MOST_COUNTED = 5


class Drafted(msgspec.Struct, frozen=True):
    """The fills of one arm: passes, committed tokens, and times in milliseconds (context encoded before).

    ``commits`` maps a number of tokens to the passes that committed so many (the last: so many or more); ``differing``
    counts fills that differ from those without drafts.
    """

    arm: Arm
    fills: int
    passes: int
    tokens: int
    commits: dict[int, int]
    differing: int
    ms: float
    p50: float
    p95: float

    @property
    def tokens_a_pass(self) -> float:
        """The tokens that a pass commits, on average over all passes."""
        return self.tokens / max(self.passes, 1)


class _One(msgspec.Struct):
    fills: tuple[str, ...]
    passes: int
    tokens: int
    commits: list[int]
    ms: float


def bench_drafts(
    model: LoadedFim,
    requests: Sequence[InfillRequest],
    *,
    syntax: bool = False,
    advance: Callable[[], None] = lambda: None,
) -> Iterator[Drafted]:
    """Fills every request in every arm, and yields the arms' figures; calls ``advance`` after each fill.

    With ``syntax`` the constraint commits ahead of its witness, and shows such tokens as drafts until it has found one:
    then passes seem to commit fewer tokens, and some of them many.
    """
    arms = [arm for arm in ARMS if model.drafter is not None or arm in ("no drafts", "project")]
    engines = {arm: Engine(model) for arm in arms}  # each with the contexts of its own requests
    found: dict[Arm, list[_One]] = {arm: [] for arm in arms}
    for number, request in enumerate(requests):
        for arm in _turned(arms, number):  # no arm always comes first
            options = DecodeOptions(prior=arm in ("project", "both"), drafter=arm in ("drafter", "both"), syntax=syntax)
            found[arm].append(_fill(engines[arm], request, options))
            advance()
    plain = found["no drafts"]
    for arm in arms:
        yield _figures(arm, found[arm], plain)


def _turned(arms: Sequence[Arm], by: int) -> list[Arm]:
    at = by % len(arms)
    return [*arms[at:], *arms[:at]]


def _fill(engine: Engine, request: InfillRequest, options: DecodeOptions) -> _One:
    """One fill, its context encoded before; ``commits`` are the tokens that each pass committed."""
    ahead = msgspec.structs.replace(options, encode_only=True)
    engine.fill(msgspec.structs.replace(request, options=ahead))
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

    began = time.perf_counter()
    result = finished(shown(engine.stream(msgspec.structs.replace(request, options=options)), count))
    tokens = result.stats.tokens + len(request.regions)  # the end of a gap is one, too
    return _One(result.fills, result.stats.nfe, tokens, commits, (time.perf_counter() - began) * 1e3)


def _figures(arm: Arm, own: Sequence[_One], plain: Sequence[_One]) -> Drafted:
    counts = Counter(min(number, MOST_COUNTED) for one in own for number in one.commits)
    times = [one.ms for one in own]
    p50, p95 = (float(np.percentile(times, share)) for share in (50, 95))
    return Drafted(
        arm=arm,
        fills=len(own),
        passes=sum(one.passes for one in own),
        tokens=sum(one.tokens for one in own),
        commits=dict(sorted(counts.items())),
        differing=sum(one.fills != other.fills for one, other in zip(own, plain, strict=True)),
        ms=sum(times),
        p50=p50,
        p95=p95,
    )


def table(found: Sequence[Drafted], costs: dict[int, float]) -> Table:
    """A table of the arms, and the milliseconds of a pass by its rows."""
    shown = ", ".join(f"{rows}: {ms:.0f}" for rows, ms in costs.items())
    grid = Table(title="Drafts", caption=f"ms of a pass by rows: {shown}")
    for column in ("drafts", "tokens a pass", *(f"{n}{'+' * (n == MOST_COUNTED)}" for n in range(1, MOST_COUNTED + 1))):
        grid.add_column(column, justify="left" if column == "drafts" else "right")
    for column in ("ms p50", "p95", "times as fast", "differing"):
        grid.add_column(column, justify="right")
    for one in found:
        total = max(sum(one.commits.values()), 1)
        shares = [f"{one.commits.get(n, 0) / total:.0%}" for n in range(1, MOST_COUNTED + 1)]
        speed = f"{found[0].ms / one.ms:.2f}x"
        grid.add_row(
            *(one.arm, f"{one.tokens_a_pass:.2f}", *shares, f"{one.p50:,.0f}", f"{one.p95:,.0f}"),
            *(speed, f"{one.differing} of {one.fills}"),
        )
    return grid
