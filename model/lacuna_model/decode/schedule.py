"""Which slots to commit after a pass, and with which tokens: entropy-bounded, by confidence, or one at a time."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.constraint import Commit
from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.canvas import Canvas, Marginals


def draw(seen: Marginals, frontier: int, temperature: float, noise: NDArray[np.float64]) -> Marginals:
    """Put a token drawn at ``temperature`` first among every slot's candidates, with Gumbel ``noise`` [B, K].

    ``exact`` slots end with the first one whose drawn token is not the best one: the slots behind it were read after
    the best one, and are dropped.
    """
    scores = seen.logp / temperature + noise
    order = np.argsort(-scores, axis=1)
    drawn = np.take_along_axis(seen.ids, order, axis=1)
    logp = np.take_along_axis(seen.logp, order, axis=1)
    if not seen.exact:
        return replace(seen, ids=drawn, logp=logp)
    unchanged = drawn[frontier : frontier + seen.exact, 0] == seen.ids[frontier : frontier + seen.exact, 0]
    exact = min(seen.exact, int(np.cumprod(unchanged).sum()) + 1)
    stop = frontier + exact
    return replace(seen, ids=drawn[:stop], logp=logp[:stop], entropy=seen.entropy[:stop], exact=exact)


def noise_of(seed: int, canvas: Canvas, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Gumbel noise [B, K] of a canvas's candidates: a function of the seed, the canvas, the place and the token.

    So neither drafts, which have more slots read in a pass, nor the order of candidates change what a seed draws. The
    hash is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
    """
    places = len(canvas.done) + np.arange(len(ids))[:, None]
    mixed: NDArray[np.uint64] = np.zeros(1, dtype=np.uint64)
    for part in (seed, *canvas.key, places, ids):
        mixed = mixed + np.asarray(part).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    uniform = ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) / 2**53
    return -np.log(-np.log(uniform))


def propose(
    canvases: Sequence[Canvas], marginals: Sequence[Marginals | None], options: DecodeOptions, steps_left: int
) -> list[Commit]:
    """The commits of this step over all gaps, best first; at least one for every gap that is still open.

    ``steps_left`` includes this step: at 1 all open slots are committed. Gaps that wait get none.
    """
    proposal: list[tuple[float, Commit]] = []
    for index, (canvas, seen) in enumerate(zip(canvases, marginals, strict=True)):
        if canvas.closed or seen is None or seen.waits:
            continue
        chosen = _choose(canvas, seen, options, steps_left)
        proposal += [(cost, Commit(index, slot, int(seen.ids[slot, 0]))) for cost, slot in chosen]
    proposal.sort(key=lambda scored: scored[0])
    return [commit for _, commit in proposal]


def _choose(canvas: Canvas, seen: Marginals, options: DecodeOptions, steps_left: int) -> list[tuple[float, int]]:
    """Slots of one gap with their cost, cheapest first.

    The frontier slot and the exact slots after it cost nothing: all tokens before them are known. Nor does a guess,
    whose slots were chosen where it was made.
    """
    opened = [slot for slot, token in enumerate(canvas.slots[: len(seen.entropy)]) if token is None]
    if seen.guess:
        return [(0.0, slot) for slot in opened]
    free = 1 if options.schedule == "single" else max(seen.exact, 1)
    frontier = canvas.frontier
    costs = sorted((0.0 if slot < frontier + free else float(seen.entropy[slot]), slot) for slot in opened)
    at_least = -(-len(opened) // steps_left) if options.steps else 1
    if options.schedule == "single":
        return costs[:at_least]
    return costs[: max(_accept(costs, seen, options), at_least)]


def _accept(costs: Sequence[tuple[float, int]], seen: Marginals, options: DecodeOptions) -> int:
    """How many of the cheapest slots may be committed together."""
    if not any(cost for cost, _ in costs):
        return len(costs)
    if options.schedule == "confidence":
        # Fast-dLLM (arXiv 2505.22618): every slot whose best token is likely enough.
        sure = [cost == 0.0 or np.exp(seen.logp[slot, 0]) >= options.confidence for cost, slot in costs]
        return next((i for i, good in enumerate(sure) if not good), len(sure))
    # The summed entropies of all but one slot bound the error of treating the slots as independent (EB-Sampler, arXiv
    # 2505.24857). The exempt slot is the frontier, on which the others depend.
    return int((np.cumsum([cost for cost, _ in costs]) <= options.entropy_bound).sum())
