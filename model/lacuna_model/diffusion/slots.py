"""The slots of one gap while a diffusion model fills them."""

from collections.abc import Callable, Sequence

import numpy as np

from lacuna_model.core.constraint import Run
from lacuna_model.decode.reader import Drafted
from lacuna_model.decode.sampling import NUM_CANDIDATES, RULED_OUT
from lacuna_model.diffusion.marginals import Marginals, sure


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
        ranks = np.argsort(marked, kind="stable")
        logp = np.where(marked, np.float32(RULED_OUT), row.logp[0])[ranks]
        return Marginals(row.ids[:, ranks], logp[None], row.entropy)

    def add(self, count: int) -> None:
        """Append masks."""
        self.tokens += [None] * count
        self._rows += [None] * count

    def keep(self, slots: Sequence[int]) -> None:
        """Drop all other slots."""
        self.tokens = [self.tokens[slot] for slot in slots]
        self._rows = [self._rows[slot] for slot in slots]

    def run(self, first: int, room: int, end: int | None) -> Run:
        """The tokens from slot ``first`` on, of ``room`` slots, none a mask; ``end`` follows, if there is one."""
        rows = [row for row in self._rows[first:room] if row is not None]
        assert len(rows) == len(self._rows[first:room])
        if end is not None and len(self._rows) < room:
            rows.append(sure(end))
        if not rows:
            return Run(np.zeros((0, NUM_CANDIDATES), np.int64), np.zeros((0, NUM_CANDIDATES), np.float32))
        return Run(np.concatenate([row.ids for row in rows]), np.concatenate([row.logp for row in rows]))

    def drafted(self, first: int, seen: Callable[[int], Marginals | None]) -> list[Drafted]:
        """The slots from ``first`` on: a mask as a pass has ``seen`` it, up to the first that none has."""
        found = list[Drafted]()
        for slot in range(first, len(self._rows)):
            row = self._rows[slot] or seen(slot)
            if row is None:
                break
            found.append(Drafted(int(row.ids[0, 0]), float(np.exp(row.logp[0, 0]))))
        return found
