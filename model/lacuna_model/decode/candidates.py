"""Several candidates for the same gaps: forks of the first fill, and their order.

A fork repeats the first fill up to a place of low confidence, and takes the next best token there.
"""

from collections.abc import Callable, Iterable, Sequence

from lacuna_model.decode.canvas import Canvas

Fills = tuple[str, ...]
# The first tokens of a candidate's fills, a run of tokens for every gap.
Begins = Sequence[Sequence[int]]


def forks(canvases: Sequence[Canvas], count: int, within: float, eog_id: int) -> list[Begins]:
    """The first tokens of up to ``count`` forks of the finished ``canvases``, those with the likeliest rivals first.

    A rival's log-probability is less than ``within`` nats below that of the token taken. Gaps that do not fork keep
    their fills.
    """
    fills = [[*canvas.tokens(), eog_id] for canvas in canvases]
    rivals = sorted(
        (gap_to_best, gap, place, token)
        for gap, canvas in enumerate(canvases)
        for place, (gap_to_best, token) in canvas.rivals.items()
        if gap_to_best < within and place < len(fills[gap])  # an end may have cut off a slot that was committed ahead
    )
    return [[*fills[:gap], [*fills[gap][:place], token], *fills[gap + 1 :]] for _, gap, place, token in rivals[:count]]


def likeliest_first(found: Iterable[Fills], likelihood: Callable[[Fills], float]) -> list[Fills]:
    """The different fills in ``found``, the likeliest first."""
    different = list(dict.fromkeys(found))
    return sorted(different, key=likelihood, reverse=True) if len(different) > 1 else different
