"""Aligns a text that is being written with an older version of it, to say how the older one goes on from there."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Where so many tokens agree with the old text, the longest agreement counts; below it, the fewest edits.
SURE_MATCH = 3
# Longer agreements are as good as one of this length.
MAX_COMPARED = 12
# The probability that the old text goes on is (m + AGREED) / (m + AGREED + 1) after m tokens that agreed.
AGREED = 0.4
# The beginning counts as so many tokens that agreed.
AGREED_AT_START = 8


class Alignment:
    """Where the tokens written so far end in the ``old`` tokens.

    For each of the n + 1 places between the old tokens, ``_matched`` has how many of the last written tokens are those
    before the place, and ``_edits`` the fewest insertions, deletions and replacements that turn the old tokens up to
    the place into the written ones (Levenshtein distance).

    A token that was written in place of an old one is expected in place of its further occurrences, too, until an old
    one stays: ``_news`` has what is expected instead of each old token.
    """

    def __init__(self, old: Sequence[int]) -> None:
        self._old = np.asarray(old, dtype=np.int64)
        self._places = np.arange(len(old) + 1)
        self._begin()

    def _begin(self) -> None:
        self._written: list[int] = []
        self._edits: NDArray[np.int64] = self._places.copy()
        self._matched: NDArray[np.int64] = np.zeros_like(self._places)
        self._matched[0] = AGREED_AT_START
        self._news = self._old
        self._replaced: tuple[int, int] | None = None  # the place and the token of a change that may be a replacement

    def copy(self) -> "Alignment":
        """An alignment that goes on from here by itself."""
        other = object.__new__(Alignment)
        other._old, other._places = self._old, self._places
        other._written, other._edits, other._matched = list(self._written), self._edits, self._matched
        other._news, other._replaced = self._news, self._replaced
        return other

    def follow(self, written: Sequence[int]) -> None:
        """Align all ``written`` tokens; those that were aligned before cost nothing."""
        if list(written[: len(self._written)]) != self._written:
            self._begin()
        for token in written[len(self._written) :]:
            self.take(token)

    def take(self, token: int) -> None:
        """Align one more token."""
        self._learn(token)
        self._written.append(token)
        same = (self._old == token) | (self._news == token)
        edits = self._edits + 1
        edits[1:] = np.minimum(edits[1:], self._edits[:-1] + ~same)
        self._edits = np.minimum.accumulate(edits - self._places) + self._places
        matched = np.zeros_like(self._matched)
        matched[1:] = np.where(same, self._matched[:-1] + 1, 0)
        self._matched = matched

    def _learn(self, token: int) -> None:
        """Take note of a replacement that ``token`` confirms, or takes back."""
        place, old = self.place, self._old
        if self._replaced is not None:
            at, new = self._replaced
            if at + 1 < len(old) and token in (old[at + 1], self._news[at + 1]):
                self._news = np.where(old == old[at], new, self._news)
        self._replaced = None
        if place < len(old) and token != self._news[place]:
            if token == old[place]:
                self._news = np.where(old == token, token, self._news)
            else:
                self._replaced = place, token

    @property
    def place(self) -> int:
        """The place in the old tokens where the written ones end: the longest agreement, else the fewest edits."""
        compared = np.minimum(self._matched, MAX_COMPARED)
        longest = compared.max()
        if longest >= SURE_MATCH:
            among = np.flatnonzero(compared == longest)
            return int(among[self._edits[among].argmin()])
        return int((self._edits - self._matched).argmin())

    def proposal(self) -> tuple[int, float] | None:
        """The next old token, or what replaces it, and its probability; None at the end of the old text."""
        place = self.place
        if place == len(self._old):
            return None
        agreed = float(self._matched[place])
        return int(self._news[place]), (agreed + AGREED) / (agreed + AGREED + 1)
