"""How fills may end that are not finished: which gaps are open still, and where their text can be cut."""

from collections.abc import Iterator, Sequence

from lacuna_model.constraint import GapView

LINE_CUTS = 8


def latest(view: GapView, seen: GapView) -> GapView:
    """A gap as it was seen last with its marginals, if no token came since."""
    return seen if (seen.done, seen.slots, seen.closed) == (view.done, view.slots, view.closed) else view


def is_open(view: GapView, eog: int) -> bool:
    """Whether tokens are still to come."""
    if view.closed:
        return False
    for token in view.slots:
        if token is None or token == eog:
            return token is None
    return view.budget > 0


def line_cuts(committed: Sequence[bytes], open_gaps: Sequence[bool]) -> Iterator[tuple[bytes, ...]]:
    """The committed texts with their unfinished ones cut at ever earlier lines."""
    texts = list(committed)
    for _ in range(LINE_CUTS):
        for gap, unfinished in enumerate(open_gaps):
            if unfinished:
                texts[gap] = texts[gap][: texts[gap].rfind(b"\n", 0, max(len(texts[gap]) - 1, 0)) + 1]
        yield tuple(texts)
        if not any(text for text, unfinished in zip(texts, open_gaps, strict=True) if unfinished):
            return
