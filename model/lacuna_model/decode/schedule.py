"""Which slots to commit after a pass, and with which tokens: entropy-bounded, by confidence, or one at a time."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lacuna_model.core.constraint import Commit
from lacuna_model.core.params import DecodeOptions
from lacuna_model.core.stopping import looping
from lacuna_model.decode.canvas import Canvas, Marginals

# WeDLM prefers positions beside committed text: every slot of distance costs this much entropy (nats).
DISTANCE_COST = 0.02


def draw(seen: Marginals, frontier: int, temperature: float, generator: np.random.Generator) -> Marginals:
    """The marginals with a token drawn at ``temperature`` in front of every slot's candidates (Gumbel's trick).

    What the base said behind a slot holds for its best token only: where another is drawn, exactness ends.
    """
    scores = seen.logp / temperature + generator.gumbel(size=seen.logp.shape)
    order = np.argsort(-scores, axis=1)
    drawn = np.take_along_axis(seen.ids, order, axis=1)
    unchanged = drawn[frontier : frontier + seen.exact, 0] == seen.ids[frontier : frontier + seen.exact, 0]
    exact = min(seen.exact, int(np.cumprod(unchanged).sum()) + 1)
    return replace(seen, ids=drawn, logp=np.take_along_axis(seen.logp, order, axis=1), exact=exact)


def without_loop(seen: Marginals, canvas: Canvas) -> Marginals:
    """The marginals with the token last at the frontier with which the fill would say the same once more."""
    token = looping(canvas.tokens())
    if token is None or canvas.is_full or token not in seen.ids[canvas.frontier]:
        return seen
    ids, logp = seen.ids.copy(), seen.logp.copy()
    order = np.argsort(ids[canvas.frontier] == token, kind="stable")
    ids[canvas.frontier], logp[canvas.frontier] = ids[canvas.frontier, order], logp[canvas.frontier, order]
    logp[canvas.frontier, -1] = logp[canvas.frontier].min()
    return replace(seen, ids=ids, logp=logp, exact=min(seen.exact, 1))


def propose(
    canvases: Sequence[Canvas], marginals: Sequence[Marginals | None], options: DecodeOptions, steps_left: int
) -> list[Commit]:
    """The commits of this step over all gaps, best first; at least one for every gap that is still open.

    ``steps_left`` counts this step: at 1 everything open is committed.
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

    The frontier slot, or as many slots from it on as are exact, costs nothing: what stands in front of it is known. To
    a model that reads anywhere equally well no slot comes first but the surest.
    """
    opened = [slot for slot, token in enumerate(canvas.slots[: len(seen.entropy)]) if token is None]
    free = 0 if seen.anywhere else 1 if options.schedule == "single" else max(seen.exact, 1)
    frontier = canvas.frontier
    costs = sorted(
        (0.0 if slot < frontier + free else float(seen.entropy[slot]) + DISTANCE_COST * (slot - frontier), slot)
        for slot in opened
    )
    if seen.anywhere and costs:
        costs[0] = 0.0, costs[0][1]
    at_least = -(-len(opened) // steps_left) if options.steps else 1
    if options.schedule == "single":
        return costs[:at_least]
    return costs[: max(_accept(costs, seen, options), at_least)]


def _accept(costs: Sequence[tuple[float, int]], seen: Marginals, options: DecodeOptions) -> int:
    """How many of the cheapest slots may be committed together."""
    if options.schedule == "confidence":
        # Fast-dLLM (arXiv 2505.22618): every slot whose best token is likely enough.
        sure = [cost == 0.0 or np.exp(seen.logp[slot, 0]) >= options.confidence for cost, slot in costs]
        return next((i for i, good in enumerate(sure) if not good), len(sure))
    # EB-Sampler (arXiv 2505.24857): the summed entropies of all but one slot bound the error of taking the slots as
    # independent; the one is the frontier here, on which all others depend.
    totals = np.cumsum([cost for cost, _ in costs])
    return int((totals <= options.entropy_bound).sum())


def corrections(
    canvases: Sequence[Canvas], marginals: Sequence[Marginals | None], budget: int, eog_id: int
) -> list[Commit]:
    """Committed slots whose token has become improbable while another is sure: at most ``budget`` edits.

    LLaDA2.1 edits at a confidence of 0.9; the old token must have fallen below 0.05 besides.
    """
    found: list[tuple[float, Commit]] = []
    for index, (canvas, seen) in enumerate(zip(canvases, marginals, strict=True)):
        if seen is None or canvas.closed or seen.waits:
            continue
        for slot, token in enumerate(canvas.slots[: len(seen.entropy)]):
            if token is None or token == eog_id:
                continue
            best = int(seen.ids[slot, 0])
            confidence = float(np.exp(seen.logp[slot, 0]))
            kept = np.exp(seen.logp[slot][seen.ids[slot] == token]).sum()
            if best not in (token, eog_id) and confidence >= 0.9 and kept < 0.05:
                found.append((-confidence, Commit(index, slot, best, edit=True)))
    found.sort(key=lambda scored: scored[0])
    return [commit for _, commit in found[:budget]]
