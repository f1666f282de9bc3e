"""Tentative commits: tokens committed ahead of the witness, before a complete fill that begins with them is found.

In the middle of a construct (``a ? b`` without its colon) a search fails more often than a few tokens later. So some
tokens may be committed without a witness as long as the grammar can read them. If no witness that holds them is found,
they are masked again (remasking) and not tried a second time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from operator import attrgetter

from lacuna_model.core.constraint import Commit, GapView, Remask, fill_tokens
from lacuna_model.syntax.region.draft import Fill, changed
from lacuna_model.syntax.region.gap_text import GapText

MAX_AHEAD = 16
MAX_FAILED = 16  # runs taken back in one gap; after that, its runs are at most one token long


class Tentative:
    """Decides which tokens of each gap may be committed ahead of the witness, and remembers those that failed."""

    def __init__(self, gaps: Sequence[GapText], eog_id: int) -> None:
        self._gaps = gaps
        self._eog_id = eog_id
        self._failed: list[set[tuple[int, ...]]] = [set() for _ in gaps]

    def takes(self, commits: Iterable[Commit], view: GapView, witness: Fill) -> list[Commit]:
        """Return those of one gap's commits that may be made as tentative ones; the witness holds none of them.

        The grammar is asked once for all of them, and for one after the other only where it cannot read them all.
        """
        committed, ahead = tuple(fill_tokens(view, self._eog_id)), list[Commit]()
        for commit in sorted(commits, key=attrgetter("slot")):
            if not self._may_follow(commit, view, witness):
                break
            ahead.append(replace(commit, tentative=True))
            view = changed(view, ahead[-1:])
        tokens = committed + tuple(commit.token for commit in ahead)
        if not ahead or self._reads(ahead[0].gap, tokens):
            return ahead
        read = takewhile(lambda end: self._reads(ahead[0].gap, tokens[:end]), range(len(committed) + 1, len(tokens)))
        return ahead[: len(list(read))]

    def _reads(self, gap: int, tokens: tuple[int, ...]) -> bool:
        return self._gaps[gap].reads(tokens) is True

    def _may_follow(self, commit: Commit, view: GapView, witness: Fill) -> bool:
        """Whether a token that the witness does not hold may be committed, provided that the grammar can read it.

        It must be for the first open slot and not the last of the block: a finished block cannot be taken back. After
        the lines that the region takes, no token completes a construct that was begun in them.
        """
        failed, committed = self._failed[commit.gap], fill_tokens(view, self._eog_id)
        if commit.token == self._eog_id or len(view.done) + commit.slot != len(committed):
            return False
        tokens = (*committed, commit.token)
        if not self.goes_on(commit.gap, view, witness) or tokens[: self._first(tokens, witness) + 1] in failed:
            return False
        return not self._gaps[commit.gap].leaves(tokens)

    def goes_on(self, gap: int, view: GapView, witness: Fill) -> bool:
        """Whether one more token of a gap may be committed ahead of the witness."""
        most = MAX_AHEAD if len(self._failed[gap]) < MAX_FAILED else 1
        slots = view.slots[: view.slots.index(self._eog_id)] if self._eog_id in view.slots else view.slots
        return slots.count(None) > 1 and len(self.run(view, witness)) < most

    def run(self, view: GapView, witness: Fill) -> range:
        """Return the slots whose tokens are ahead of a gap's witness; none where that begins in a finished block."""
        committed, done = fill_tokens(view, self._eog_id), len(view.done)
        first = self._first(committed, witness)
        return range(first - done, len(committed) - done) if first >= done else range(0)

    def take_back(self, gap: int, view: GapView, witness: Fill) -> Remask:
        """Return the remask of the tokens ahead of a gap's witness, and remember that they failed."""
        committed = tuple(fill_tokens(view, self._eog_id))
        first = self._first(committed, witness)
        self._failed[gap].add(committed[: first + 1])
        return Remask(gap, first - len(view.done))

    def _first(self, tokens: Sequence[int], witness: Fill) -> int:
        """The place of the first token that the witness does not have."""
        pairs = enumerate(zip(tokens, witness.tokens, strict=False))
        known = min(len(tokens), len(witness.tokens))
        return next((place for place, (own, other) in pairs if own != other), known)
