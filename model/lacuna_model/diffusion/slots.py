"""The slots of one gap while a diffusion model fills them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lacuna_model.decode.canvas import Marginals
from lacuna_model.decode.open_slots import RULED_OUT, joined, sure


class Slots:
    """The slots of a gap: ``tokens``, None where one is a mask.

    ``changed`` counts the tokens that became others. ``offered``: the constraint has been asked about them. ``marks``
    are the tokens that are no text, and so no alternative to a token: they end a text, or change its length.
    """

    def __init__(self, marks: Sequence[int] = ()) -> None:
        self._marks = list(marks)
        self.tokens: list[int | None] = []
        self.changed = 0
        self.offered = False
        self._rows: list[Marginals | None] = []

    def become(self, tokens: Sequence[int | None]) -> None:
        """Take these tokens as given."""
        self.tokens = list(tokens)
        self._rows = [None if token is None else sure(token) for token in tokens]

    def put(self, slot: int, row: Marginals) -> None:
        """Give a slot the best token of its ``row``."""
        self.tokens[slot], self._rows[slot] = int(row.ids[0, 0]), self._without_marks(row)

    def _without_marks(self, row: Marginals) -> Marginals:
        """The row of a slot in which no mark is likelier than what is text."""
        marked = np.isin(row.ids[0], self._marks)
        marked[0] = False
        if not marked.any():
            return row
        order = np.argsort(marked, kind="stable")
        logp = np.where(marked, np.float32(RULED_OUT), row.logp[0])[order]
        return replace(row, ids=row.ids[:, order], logp=logp[None])

    def add(self, count: int) -> None:
        """Append masks."""
        self.tokens += [None] * count
        self._rows += [None] * count

    def keep(self, slots: Sequence[int]) -> None:
        """Drop all other slots."""
        self.tokens = [self.tokens[slot] for slot in slots]
        self._rows = [self._rows[slot] for slot in slots]

    def marginals(
        self, seen: Callable[[int], Marginals | None], room: int, *, whole: bool, end: int | None
    ) -> Marginals:
        """What is known of the first ``room`` slots: a filled one as it was filled, a mask as a pass has ``seen`` it.

        They are for the constraint if they are ``whole``; then the token ``end`` stands behind them, if there is one.
        """
        rows: list[Marginals] = []
        for slot, row in enumerate(self._rows[:room]):
            found = row if row is not None else seen(slot)
            if found is None:
                break
            rows.append(found)
        if whole and end is not None and len(rows) < room:
            rows.append(sure(end))
        shown = joined(rows) if rows else NOTHING
        return replace(shown, exact=len(rows) if whole else 0, guess=True, waits=not whole)


# What is known of a gap without slots.
NOTHING = Marginals(np.zeros((0, 1), np.int64), np.zeros((0, 1), np.float32), np.zeros(0, np.float32))
