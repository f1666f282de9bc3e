"""Renewal: another fill of one gap beside a witness's other fills, which holds more of the model's tokens.

Searches that failed are not repeated. Tokens that the model will probably propose next are searched for in advance.
"""

from collections.abc import Hashable, Sequence

from lacuna_model.core.constraint import Commit, GapView
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.region.draft import Fill, agrees, holds
from lacuna_model.syntax.search.beam import Effort, joint_search
from lacuna_model.syntax.search.refused_ends import made_up
from lacuna_model.syntax.search.search import Search
from lacuna_model.syntax.search.verified import Verified

# A search costs no more than a pass of the base, and a token that the model did not mean costs more: with this budget
# 3 of 250 true fills (lines, blocks, spans) are lost; with 8 checks and 4 ms it was 17.
RENEW_VERIFIES = 32
RENEW_SECONDS = 0.05
LIKELY = 2  # all of 84 ends were among the two best tokens of the pass before

Witness = list[Fill]


class Renewal:
    """Searches for other fills of one gap."""

    def __init__(self, search: Search, judge: Verified, clock: Clock, eog_id: int) -> None:
        self._search, self._judge, self._clock = search, judge, clock
        self._eog_id = eog_id
        self._tried: set[Hashable] = set()  # searches that found nothing
        self._vain: set[Hashable] = set()  # commits for which a search found no fill
        self._expected: dict[int, tuple[Hashable, Witness, Witness]] = {}

    def find(self, gaps: Sequence[GapView], own: Sequence[Commit], gap: int, witness: Witness) -> Witness:
        """Return the witness with another fill of a gap that fits its ``own`` commits best, or the witness itself.

        A failed search is not repeated if only the other gaps have changed, or the model's candidates: of 157 such
        searches none succeeded.
        """
        view = gaps[gap]
        wanted = gap, view.done, view.slots, tuple(own)
        expected, before, found = self._expected.get(gap, ((), None, witness))
        if expected == wanted and before == witness:
            del self._expected[gap]
            return found
        key = wanted, view.ids[:, :1].tobytes(), tuple(witness)
        if key in self._tried or wanted in self._vain:
            return witness
        whole = self._searched(gaps, own, gap, witness, bare=False)
        if self._clock.over:
            return whole or witness
        if whole is None:
            self._tried.add(key)
        if whole is None or (own and not any(agrees(whole[gap].tokens, one, view, self._eog_id) for one in own)):
            self._vain.add(wanted)
        return whole or witness

    def expect(self, gaps: Sequence[GapView], gap: int, witness: Witness) -> Witness:
        """Search in advance for what ``find`` may be asked next: the end of a gap, or the last token of its block.

        The result is kept until that is proposed. It does not replace the witness, since fewer tokens would agree with
        it, unless the witness lacks committed tokens. Returns the witness to use.
        """
        own = self._likely(gaps[gap], gap)
        if own is None or agrees(witness[gap].tokens, own, gaps[gap], self._eog_id):
            return witness
        found = self.find(gaps, [own], gap, witness)
        if found is witness or not holds(witness[gap].tokens, gaps[gap], self._eog_id):
            return found
        self._expected[gap] = (gap, gaps[gap].done, gaps[gap].slots, (own,)), witness, found
        return witness

    def _likely(self, view: GapView, gap: int) -> Commit | None:
        """The commit that may be proposed next for the first open slot, if it would wait for a search."""
        slot = view.slots.index(None) if None in view.slots else len(view.ids)
        likely = view.ids[slot, :LIKELY].tolist() if slot < len(view.ids) else []
        if self._eog_id in likely:
            return Commit(gap, slot, self._eog_id)
        return Commit(gap, slot, likely[0]) if likely and view.slots.count(None) == 1 else None

    def shorter(self, gaps: Sequence[GapView], gap: int, witness: Witness, head: bytes) -> Witness:
        """Return the witness with a fill that has nothing of the model's draft after ``head``, what is committed.

        The witness itself is returned if only it has no made-up names, or if it is not longer.
        """
        found = self._searched(gaps, (), gap, witness, bare=True) or witness
        return min((witness, found), key=lambda way: (bool(made_up(head, way[gap].text)), len(way[gap].text)))

    def _searched(
        self, gaps: Sequence[GapView], own: Sequence[Commit], gap: int, witness: Witness, *, bare: bool
    ) -> Witness | None:
        queue = self._search.candidates(gaps, own, gap, known=witness[gap], bare=bare)
        effort = Effort(RENEW_VERIFIES, RENEW_SECONDS, self._clock)
        return joint_search({gap: queue}, witness, self._judge, effort).whole
