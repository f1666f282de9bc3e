"""The first witness: searches for fills of all gaps that are valid together, where none are known yet."""

from collections.abc import Collection, Sequence

from lacuna_model.core.constraint import Commit, GapView
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.region.draft import Fill, lay_out
from lacuna_model.syntax.region.gap_text import GapText
from lacuna_model.syntax.search.beam import Effort, Found
from lacuna_model.syntax.search.last_word import LastWord
from lacuna_model.syntax.search.search import ATTEMPTS, BARE_ATTEMPTS, Search
from lacuna_model.syntax.search.verified import Verified

# A good draft is valid at once. Else a witness without drafts is found sooner, and renewed with them gap by gap.
DRAFT_VERIFIES = 8
DRAFT_SECONDS = 0.004
# Without a witness no token can be committed, and a deferral costs a whole model step (about 20 ms). Each attempt gets
# this much more time than the one before: where parses are slow, the first attempt checks only a few fills.
FIRST_VERIFIES = 64
FIRST_SECONDS = 0.020
FIRST_SECONDS_MORE = 0.010  # for each further gap
MAX_BROKEN_OFF = 6  # calls that the clock ended and that do not count as attempts


class FirstWitness:
    """Searches for a first witness, a little further with each call.

    ``attempts`` counts the long searches, and ``partial`` holds the fills that they found for some of the gaps.
    """

    def __init__(
        self, search: Search, judge: Verified, last_word: LastWord, clock: Clock, num_gaps: int, *, strict: bool
    ) -> None:
        self._search, self._judge, self._last_word, self._clock = search, judge, last_word, clock
        self._strict = strict
        self.attempts = self._broken_off = 0
        self.partial: list[Fill | None] = [None] * num_gaps

    def find(
        self, gaps: Sequence[GapView], proposal: Sequence[Commit], which: Collection[int], witness: list[Fill] | None
    ) -> list[Fill] | None:
        """Return fills for ``which`` gaps, beside those of the ``witness`` for the others; ``witness`` for none."""
        held = [None if gap in which else fill for gap, fill in enumerate(witness or self.partial)]
        drafts = Effort(DRAFT_VERIFIES, DRAFT_SECONDS, self._clock)
        if self.attempts == 0:
            found = self._adopted(self._search.together(gaps, proposal, held, drafts, known=witness))
            if found is not None:
                return found
        most = 1 if all(gaps[gap].closed for gap in which) else ATTEMPTS  # closed gaps have only one fill
        found = None
        if self.attempts < most:
            self.attempts += 1
            found = self._attempt(gaps, proposal, held, witness)
            if found is None and witness is None and self._clock.over and self._broken_off < MAX_BROKEN_OFF:
                self._broken_off += 1
                self.attempts = max(self.attempts - 1, 0)
        return witness if found is None else found

    def offer(self, view: GapView, gap: GapText, text: bytes) -> list[Fill] | None:
        """Return ``text`` as the fill of the only gap, if it is valid and there is room for it; else None."""
        fill, draft = gap.fill((), gap.due(()) + text), lay_out(view, {}, gap.vocabulary.eog_id)
        if draft is None or draft.kept or len(fill.tokens) > draft.capacity or not gap.accepts(fill.text):
            return None
        check = self._judge.recall((fill.text,)) or self._judge.check((fill.text,), thorough=True)
        return self._adopted(Found((fill,))) if check.valid else None

    def _attempt(
        self,
        gaps: Sequence[GapView],
        proposal: Sequence[Commit],
        held: list[Fill | None],
        witness: list[Fill] | None,
    ) -> list[Fill] | None:
        """A long search, first for fills without tokens of the model: by guesses, then by the grammar.

        Failures are remembered, so that even with the same probabilities a further attempt searches further. The last
        attempt may leave errors around the gaps.
        """
        bare = self.attempts <= BARE_ATTEMPTS
        if self.attempts == BARE_ATTEMPTS and None in held:
            self._search.hard(gaps, held)
        if self.attempts == ATTEMPTS and None in held:
            if self._judge.displace():  # a fill with a misplaced node is better than none
                self._search.hard(gaps, held)
            if None in held and not self._strict:
                self._judge.relax()
        missing = max(held.count(None), 1)  # fills that were found in parts are checked together too
        seconds = FIRST_SECONDS + FIRST_SECONDS_MORE * (missing - 1)
        effort = Effort(FIRST_VERIFIES * missing, seconds * self.attempts, self._clock)
        found = self._search.together(gaps, proposal, held, effort, known=witness, bare=bare)
        if found.whole is not None:
            adopted = self._adopted(found)
            if adopted is not None:
                self.attempts = 0
            return adopted
        # gaps with a fill need not be searched again
        solved = [None if gap in found.unsolved else fill for gap, fill in enumerate(found.fills)]
        progress = solved.count(None) < self.partial.count(None)
        self.attempts -= progress
        # without progress, one of these fills may be the reason why other gaps have none
        self.partial = solved if progress or self.attempts % 2 else [None] * len(gaps)
        return None

    def _adopted(self, found: Found) -> list[Fill] | None:
        """The fills that were found, if the last word would accept them: a witness is hard to give up later."""
        if found.whole is None:
            return None
        texts = tuple(fill.text for fill in found.whole)
        if self._last_word.refusal(texts, final=False):
            self._judge.refuse(texts)
            return None
        return found.whole
