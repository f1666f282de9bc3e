"""A run of tokens (a track) and the arena's rows of them: what passes ask of it is counted once for each change.

So what the host does for a pass depends on the tokens that have changed since the last one, and hardly on the length of
the context. Of each row of logits a pass keeps a summary: the likeliest tokens, and their log-probabilities, the same
wherever it is made, in a recorded graph or after the pass.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import unmask
from lacuna_model.decode.sampling import NUM_CANDIDATES, RULED_OUT
from lacuna_model.network.arena import NO_ROWS, RowList
from lacuna_model.text.diff import num_common

UNREAD = -1
# Of a token that passes leave out, and that no row attends to.
LEFT_OUT = -2

Rows = NDArray[np.int64]
# Of n rows [n, 2 C], in float32: see `Digests.rows`.
Summaries = np.ndarray[Any, np.dtype[np.float32]]


def unread_rows(count: int) -> Rows:
    """The rows of so many tokens that were not read yet."""
    return np.full(count, UNREAD, dtype=np.int64)


class Track:
    """A run of tokens ``ids``, the first at position ``start``; ``rows`` has the arena row of each, UNREAD or LEFT_OUT.

    What passes ask of the rows is counted when they change: how many were not read yet (``num_unread``), or are left
    out either (``num_missing``); the arena's rows of the others (``used``), the row after the last of these (``end``),
    and whether they are neighbours, in order (``is_run``).

    In place of a token, -j is mask row j (:mod:`lacuna_model.network.linear`). Tokens may have additions, those of the
    track's ``kind``.
    """

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        self.ids: list[int] = []
        self.start = 0
        self.rows = unread_rows(0)
        self._through: tuple[list[Rows], RowList] = [], NO_ROWS

    @property
    def rows(self) -> Rows:
        """The arena row of each token, which is not written to."""
        return self._rows

    @rows.setter
    def rows(self, rows: Rows) -> None:
        rows.flags.writeable = False
        self._rows, self.used = rows, rows[rows >= 0]
        self.num_missing = len(rows) - len(self.used)
        self.num_unread = int(np.count_nonzero(rows == UNREAD))
        self.end = int(self.used.max(initial=-1)) + 1
        self.is_run = bool((np.diff(self.used) == 1).all())

    def place(self, places: Sequence[int] | NDArray[np.bool_], rows: Rows | int) -> None:
        """Change the rows of some tokens."""
        changed = self.rows.copy()
        changed[places] = rows
        self.rows = changed

    def become(self, ids: Sequence[int], start: int) -> int:
        """Replace the tokens and their position; return how many leading ones keep their rows."""
        kept = num_common(self.ids, list(ids)) if start == self.start else 0
        if kept < len(self.ids) or kept < len(ids):
            self.rows = np.concatenate((self.rows[:kept], unread_rows(len(ids) - kept)))
        self.ids, self.start = list(ids), start
        return kept

    def forget_from(self, place: int) -> None:
        """Mark all tokens from a place on as unread."""
        if place < len(self.rows):
            self.rows = np.concatenate((self.rows[:place], unread_rows(len(self.rows) - place)))

    @property
    def unread(self) -> list[int]:
        """The places of tokens that were not read yet."""
        found: list[int] = (self.rows == UNREAD).nonzero()[0].tolist() if self.num_unread else []
        return found

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which tokens [n] were not read, whether they are left out or not."""
        found: NDArray[np.bool_] = self.rows < 0
        return found

    def leave_out(self, places: NDArray[np.bool_]) -> None:
        """Leave out those of the unread tokens [n], and none of the others."""
        if self.num_missing:
            missing = self.missing
            self.place(missing, np.where(places[missing], LEFT_OUT, UNREAD))

    def leave_none_out(self) -> None:
        """Let passes read every token."""
        if self.num_missing > self.num_unread:
            self.place(self.missing, UNREAD)

    def follows(self, row: int) -> bool:
        """Whether the used rows are neighbours, in order, from a ``row`` on."""
        return self.is_run and (not len(self.used) or int(self.used[0]) == row)

    def through(self, before: "Chain", listed: Callable[[Rows], RowList]) -> RowList:
        """The used rows of the tracks ``before`` it in a chain and its own, ``listed`` anew if one has changed."""
        given = [one.rows for one in (*before, self)]
        known, found = self._through
        if len(known) != len(given) or not all(map(operator.is_, known, given)):
            found = listed(np.concatenate([one.used for one in (*before, self)]))
            self._through = given, found
        return found


Chain = Sequence[Track]


def num_unread(chains: Iterable[Chain]) -> int:
    """The tokens that a pass over chains has to read; they may share tracks."""
    return sum(track.num_unread for track in {track for chain in chains for track in chain})


@dataclass(frozen=True, slots=True)
class EndRule:
    """What may come after a row's tokens: no end where it is too ``early``.

    ``narrow`` rules out further tokens in the row [V] of logits, where few rows need that.
    """

    early: bool = False
    narrow: Callable[[Tensor], object] | None = None


@dataclass(frozen=True)
class Digests:
    """The summaries of a model whose tokens ``ends`` all end a gap as ``eog_id`` does; other ``specials`` are no text.

    Those that have the same tokens are equal: a recorded graph serves them all.
    """

    eog_id: int
    ends: tuple[int, ...]
    specials: tuple[int, ...]
    device: torch.device
    width: int = 2 * NUM_CANDIDATES
    _ends: Tensor = field(init=False, repr=False, compare=False)
    _specials: Tensor = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, ids in (("_ends", self.ends), ("_specials", self.specials)):
            object.__setattr__(self, name, torch.tensor(ids, dtype=torch.long, device=self.device))

    def restricted(self, logits: Tensor, early: Tensor | None = None) -> Tensor:
        """The logits [n, V], changed in place: all end tokens summed as end-of-gap, other special tokens ruled out.

        The end is ruled out, too, in the rows that are ``early``, bool [n].
        """
        ends = logits[:, self._ends].logsumexp(-1)
        logits.index_fill_(1, self._specials, RULED_OUT)
        logits[:, self.eog_id] = ends if early is None else ends.masked_fill_(early, RULED_OUT)
        return logits

    def rows(self, logits: Tensor) -> Tensor:
        """Of each row [n, 2 C]: C candidates, best first, and their log-probabilities.

        Token ids are exact in float32 up to 16.7 million.
        """
        ids, logp = unmask(logits, NUM_CANDIDATES)
        return torch.cat((ids.float(), logp), dim=1)


def parted(rows: Summaries) -> Sequence[np.ndarray[Any, Any]]:
    """Candidates [n, C] and log-probabilities [n, C] of summaries."""
    ids, logp = np.split(rows, 2, axis=1)
    return ids.astype(np.int64), logp
