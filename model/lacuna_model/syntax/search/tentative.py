"""Tentative commits: tokens that go ahead of the witness, since no complete fill that begins with them is found yet.

In the middle of a construct (``a ? b`` without its colon) a search finds no completion more often than a few tokens
later. So some tokens may be committed without one as long as the grammar reads them behind what is there. Where no
witness that holds them turns up they are masked again (remasking), and are not tried a second time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from operator import attrgetter

from lacuna_model.core.constraint import Commit, GapView, Remask, fill_tokens
from lacuna_model.syntax.region.draft import Fill, changed
from lacuna_model.syntax.region.gap_text import GapText

MOST_AHEAD = 8
MOST_FAILED = 4  # runs taken back in one gap, before it gets none longer than a token any more


class Tentative:
    """Which tokens of each gap may go ahead of the witness, and which have come to nothing."""

    def __init__(self, gaps: Sequence[GapText], eog_id: int) -> None:
        self._gaps = gaps
        self._eog_id = eog_id
        self._failed: list[set[tuple[int, ...]]] = [set() for _ in gaps]

    def takes(self, commits: Iterable[Commit], view: GapView, witness: Fill) -> list[Commit]:
        """Of commits of one gap, none of which its witness has, those that may be made all the same, as tentative ones.

        The grammar is asked once for all of them, and for one after the other only where it does not read them.
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
        """Whether a token may be committed that the witness of its gap does not have, were it only read.

        It is the first open slot's, and not the block's last: what is finished cannot be taken back. Behind the lines
        that the region takes no token completes what was begun in them.
        """
        failed, committed = self._failed[commit.gap], fill_tokens(view, self._eog_id)
        if commit.token == self._eog_id or len(view.done) + commit.slot != len(committed):
            return False
        tokens = (*committed, commit.token)
        if not self.goes_on(commit.gap, view, witness) or tokens[: self._first(tokens, witness) + 1] in failed:
            return False
        return not self._gaps[commit.gap].leaves(tokens)

    def goes_on(self, gap: int, view: GapView, witness: Fill) -> bool:
        """Whether one more token of a gap may go ahead of the witness."""
        most = MOST_AHEAD if len(self._failed[gap]) < MOST_FAILED else 1
        slots = view.slots[: view.slots.index(self._eog_id)] if self._eog_id in view.slots else view.slots
        return slots.count(None) > 1 and len(self.run(view, witness)) < most

    def run(self, view: GapView, witness: Fill) -> range:
        """The slots whose tokens are ahead of a gap's witness."""
        committed = fill_tokens(view, self._eog_id)
        return range(self._first(committed, witness) - len(view.done), len(committed) - len(view.done))

    def take_back(self, gap: int, view: GapView, witness: Fill) -> Remask:
        """Masks what went ahead of a gap's witness."""
        committed = tuple(fill_tokens(view, self._eog_id))
        first = self._first(committed, witness)
        self._failed[gap].add(committed[: first + 1])
        return Remask(gap, first - len(view.done))

    def _first(self, tokens: Sequence[int], witness: Fill) -> int:
        """The place of the first token that the witness does not have."""
        pairs = enumerate(zip(tokens, witness.tokens, strict=False))
        known = min(len(tokens), len(witness.tokens))
        return next((place for place, (own, other) in pairs if own != other), known)
