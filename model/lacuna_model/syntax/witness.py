"""The witness: commit only what agrees with a complete fill that has been verified.

Every state of the canvas can then be finished within its real budget, and the end result is the witness. The idea of
keeping the last verified look-ahead fill is LAVE's (arXiv 2602.00612); a fill between a left and a right context has
to satisfy both, as in Melcer et al. (arXiv 2402.17988). Here tree-sitter is the judge and the whole file the context.
"""

import time
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

from lacuna_model.constraint import Commit, ConstraintStats, GapView, Remask, TokenText, Verdict, fill_tokens
from lacuna_model.params import Region
from lacuna_model.syntax.beam import Effort, Found, joint_search
from lacuna_model.syntax.clock import Clock
from lacuna_model.syntax.draft import Fill, holds
from lacuna_model.syntax.gap_text import gap_texts
from lacuna_model.syntax.judge import Judge
from lacuna_model.syntax.languages import Language
from lacuna_model.syntax.last_word import LastWord
from lacuna_model.syntax.overruled import made_up
from lacuna_model.syntax.queues import Queues
from lacuna_model.syntax.search import ATTEMPTS, BARE_ATTEMPTS, Search
from lacuna_model.syntax.tentative import Tentative
from lacuna_model.syntax.unfinished import document_of
from lacuna_model.syntax.vocabulary import vocabulary_of

# Drafts that are right are so at once; a witness without them is found sooner, and renewed with them gap by gap.
DRAFT_VERIFIES = 8
DRAFT_SECONDS = 0.004
STEP_VERIFIES = 2
STEP_SECONDS = 0.002
INSIST_VERIFIES = 8  # with 6 the model lost the name of a loop in two of 150 lines
INSIST_SECONDS = 0.004
INSIST_SECONDS_ALL = 0.006  # of all gaps together, the last of them not cut short
# Of 157 searches for commits of a gap that two had failed to find, with all else in it as it was, none found them.
MOST_VAIN = 2
# Without a witness nothing can be committed, and a deferral costs a whole step of the model (about 20 ms). Each
# attempt may take as long again as the one before: where a parse is slow the first gets through a few fills only.
FIRST_VERIFIES = 64
FIRST_SECONDS = 0.020
FIRST_SECONDS_MORE = 0.010  # for each further gap
# A call ends after this time, whatever it was about to try: all other requests wait for it.
CALL_SECONDS = 1.0
GRACE_SECONDS = 0.3  # for the last word where the deadline has passed
MOST_BROKEN_OFF = 6  # such calls that go on where they ended


class SyntaxConstraint:
    """Keeps a file syntactically valid, and each region's own rules, while its gaps are denoised.

    A file that is broken around its gaps is to be repaired by the fills. Where none is found that does so, errors
    that were there before may stay, unless the constraint is ``strict``: then the answer is no_valid_fill.
    """

    active = True

    def __init__(
        self,
        text: bytes,
        regions: Sequence[Region],
        language: Language | None,
        tokens: TokenText,
        *,
        strict: bool = False,
        deadline: float | None = None,
    ) -> None:
        self.stats = ConstraintStats()
        self._vocabulary = vocabulary_of(tokens)
        spans = [(region.start, region.end) for region in regions]
        in_line = all(region.single_line or region.max_lines == 1 for region in regions)
        self._clock = Clock(deadline)
        self._document = document_of(text, spans, language, self._clock, in_line=in_line) if language else None
        self._judge = Judge(self._document, self.stats)
        self._gaps = gap_texts(text, regions, self._vocabulary, self._document)
        original = [text[start:end] for start, end in spans]
        queues = Queues(self._vocabulary, self._document, self._gaps, original)
        self._search = Search(self._document, self._judge, queues, self._clock)
        self._last_word = LastWord(
            text, regions, self._document, self._gaps, self._judge, self._search, self._clock, strict=strict
        )
        self._tentative = Tentative(self._gaps, self._vocabulary.eog_id)
        self._witness: list[Fill] | None = None
        self._partial: list[Fill | None] = [None] * len(regions)
        self._attempts = self._broken_off = 0
        self._seen: tuple[GapView, ...] = ()
        self._tried: dict[Hashable, int] = {}  # how many verifies a search took that found nothing
        self._vain: Counter[Hashable] = Counter()  # how many searches for the same commits found no fill with them
        self._strict = strict

    @property
    def witness(self) -> tuple[str, ...] | None:
        """The verified complete fills that every committed token agrees with, as text."""
        return tuple(fill.text.decode() for fill in self._witness) if self._witness is not None else None

    def foresee(self, gaps: Sequence[GapView]) -> list[str]:
        """Fills that are valid together, before anything is proposed; "" for gaps that none are soon found for."""
        self._clock.begin(CALL_SECONDS)
        while self._witness is None and self._attempts < BARE_ATTEMPTS and not self._clock.over:
            self._find(gaps, (), set(range(len(gaps))))
        return [fill.text.decode() if fill is not None else "" for fill in self._witness or self._partial]

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        """The proposed commits that a witness agrees with, or else a tentative one, or the witness's own next token."""
        started, cpu = time.perf_counter(), time.thread_time()
        self._clock.begin(CALL_SECONDS)
        admitted = self._admit(gaps, proposal)
        self.stats.ms += (time.perf_counter() - started) * 1e3
        self.stats.step_ms.append((time.thread_time() - cpu) * 1e3)
        taken = {(commit.gap, commit.slot, commit.token) for commit in admitted if isinstance(commit, Commit)}
        self.stats.vetoes += sum((commit.gap, commit.slot, commit.token) not in taken for commit in set(proposal))
        self.stats.deferrals += not admitted
        return admitted

    def _admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        if not proposal:
            return []
        self._take_prefixes(gaps)
        self._seen = tuple(gaps)
        if stray := self._strayed(gaps):
            self._find(gaps, proposal, stray)
        if self._witness is None:
            return []
        self._renew(gaps, proposal)
        admitted = [commit for commit in proposal if self._agrees(gaps, commit)]
        return (
            admitted
            or self._go_ahead(gaps, [commit for commit in proposal if self._is_ahead(gaps, commit.gap)])
            or self._insist(gaps, proposal)
            or self._go_ahead(gaps, proposal)
            or self._take_back(gaps, proposal)
            or self._swap(gaps, proposal)
        )

    def _take_prefixes(self, gaps: Sequence[GapView]) -> None:
        for gap, view in zip(self._gaps, gaps, strict=True):
            gap.prefix = view.prefix

    def _agrees(self, gaps: Sequence[GapView], commit: Commit) -> bool:
        if self._witness is None or self._is_ahead(gaps, commit.gap):
            return False
        tokens = self._witness[commit.gap].tokens
        position = len(gaps[commit.gap].done) + commit.slot
        if commit.token == self._vocabulary.eog_id:
            return position >= len(tokens)
        return position < len(tokens) and tokens[position] == commit.token

    def _strayed(self, gaps: Sequence[GapView]) -> set[int]:
        """The gaps whose committed tokens the witness does not hold; all of them where there is no witness.

        Tentative ones it need not hold as long as the gap is open.
        """
        if self._witness is None:
            return set(range(len(gaps)))
        settled = (gap for gap, view in enumerate(gaps) if view.closed or not view.tentative)
        return {gap for gap in settled if not self._holds(gaps[gap], self._witness[gap])}

    def _is_ahead(self, gaps: Sequence[GapView], gap: int) -> bool:
        """Whether a gap has tentative tokens that the witness does not hold."""
        assert self._witness is not None
        return gaps[gap].tentative and not self._holds(gaps[gap], self._witness[gap])

    def _holds(self, view: GapView, fill: Fill) -> bool:
        return holds(fill.tokens, view, self._vocabulary.eog_id)

    def _find(self, gaps: Sequence[GapView], proposal: Sequence[Commit], which: set[int]) -> None:
        """Looks for a first witness, each time it is called a little further."""
        held = [None if gap in which else fill for gap, fill in enumerate(self._witness or self._partial)]
        drafts = Effort(DRAFT_VERIFIES, DRAFT_SECONDS, self._clock)
        if self._attempts == 0 and self._adopts(
            self._search.together(gaps, proposal, held, drafts, known=self._witness)
        ):
            return
        most = 1 if all(gaps[gap].closed for gap in which) else ATTEMPTS  # what is closed has but one fill
        if self._attempts < most:
            self._attempts += 1
            self._attempt(gaps, proposal, held)
            if self._witness is None and self._clock.over and self._broken_off < MOST_BROKEN_OFF:
                self._broken_off += 1
                self._attempts = max(self._attempts - 1, 0)

    def _attempt(self, gaps: Sequence[GapView], proposal: Sequence[Commit], held: list[Fill | None]) -> None:
        """A long search, first for fills without anything of the model's: by guesses, then by the grammar.

        What failed before is remembered, so that even with the same marginals a further attempt is a longer search.
        The last may leave what is broken around the gaps.
        """
        bare = self._attempts <= BARE_ATTEMPTS
        if self._attempts == BARE_ATTEMPTS and None in held:
            self._search.hard(gaps, held)
        if self._attempts == ATTEMPTS and None in held:
            if self._judge.displace():  # what is merely out of place is better than nothing
                self._search.hard(gaps, held)
            if None in held and not self._strict:
                self._judge.relax()
        missing = max(held.count(None), 1)  # what was found in parts is checked as a whole too
        seconds = FIRST_SECONDS + FIRST_SECONDS_MORE * (missing - 1)
        effort = Effort(FIRST_VERIFIES * missing, seconds * self._attempts, self._clock)
        found = self._search.together(gaps, proposal, held, effort, known=self._witness, bare=bare)
        if found.whole is not None:
            if self._adopts(found):
                self._attempts = 0
        else:  # what was found for some gaps need not be looked for again
            solved = [None if gap in found.unsolved else fill for gap, fill in enumerate(found.fills)]
            progress = solved.count(None) < self._partial.count(None)
            self._attempts -= progress
            if progress or self._attempts % 2:
                self._partial = solved
            else:  # one of them may be to blame for what the others lack
                self._partial = [None] * len(gaps)

    def _adopts(self, found: Found) -> bool:
        """Takes what was found as the witness, if the last word would be for it: it is hard to go back on later."""
        if found.whole is None:
            return False
        texts = tuple(fill.text for fill in found.whole)
        if self._last_word.refusal(texts, final=False):
            self._judge.refuse(texts)
            return False
        self._witness = found.whole
        return True

    def _renew(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> None:
        """Looks for a witness that holds what this one refuses, gap after gap: one's trouble is not another's."""
        for gap in dict.fromkeys(commit.gap for commit in proposal if not self._agrees(gaps, commit)):
            self._renew_gap(gaps, proposal, gap, Effort(STEP_VERIFIES, STEP_SECONDS, self._clock))

    def _renew_gap(self, gaps: Sequence[GapView], proposal: Sequence[Commit], gap: int, effort: Effort) -> None:
        """Looks for another fill of one gap; what was in vain is not tried again with no more effort.

        Nor is it a third time where only the other gaps have changed, or what the model has for the open slots.
        """
        assert self._witness is not None
        view, own = gaps[gap], tuple(commit for commit in proposal if commit.gap == gap)
        key = gap, view.done, view.slots, own, view.ids[:, :1].tobytes(), tuple(self._witness)
        wanted = key[:4], effort.verifies
        if self._tried.get(key, 0) >= effort.verifies or self._vain[wanted] >= MOST_VAIN:
            return
        queue = self._search.candidates(gaps, proposal, gap, known=self._witness[gap])
        found = joint_search({gap: queue}, self._witness, self._judge, effort)
        if found.whole is not None:
            self._witness = found.whole
        elif not self._clock.over:
            self._tried[key] = effort.verifies
        if not self._clock.over:
            self._vain[wanted] += found.whole is None or not any(self._agrees(gaps, commit) for commit in own)

    def _insist(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> list[Commit]:
        """A longer search for a gap's best commit alone, where a step would else take nothing of what was proposed.

        A token of the witness's own costs the fill its sense, and a step lost costs more than this search.
        """
        started = time.thread_time()
        for gap in dict.fromkeys(commit.gap for commit in proposal):
            best = next(commit for commit in proposal if commit.gap == gap)
            self._renew_gap(gaps, [best], gap, Effort(INSIST_VERIFIES, INSIST_SECONDS, self._clock))
            if self._agrees(gaps, best):
                return [best]
            if time.thread_time() - started > INSIST_SECONDS_ALL:
                break
        return []

    def _go_ahead(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> list[Commit]:
        """The first commit that may be tentative."""
        assert self._witness is not None
        for commit in proposal:
            if self._tentative.takes(commit, gaps[commit.gap], self._witness[commit.gap]):
                return [replace(commit, tentative=True)]
        return []

    def _take_back(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> list[Remask]:
        """Masks the tentative tokens of a gap, if no witness is found that holds them."""
        assert self._witness is not None
        for gap in dict.fromkeys(commit.gap for commit in proposal):
            if self._is_ahead(gaps, gap):
                self._renew_gap(gaps, (), gap, Effort(INSIST_VERIFIES, INSIST_SECONDS, self._clock))
                if self._is_ahead(gaps, gap):
                    return [self._tentative.take_back(gap, gaps[gap], self._witness[gap])]
        return []

    def _swap(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> list[Commit]:
        """The witness's token for the first open slot, of the gap that was proposed first.

        Where the model would go on in a line that the region does not take, all that the fill lacks is committed: else
        it would write into its last line what is to stand below.
        """
        assert self._witness is not None
        eog = self._vocabulary.eog_id
        for gap in dict.fromkeys([commit.gap for commit in proposal]):
            committed, own = fill_tokens(gaps[gap], eog), [commit for commit in proposal if commit.gap == gap]
            leaves = any(self._leaves(gaps[gap], commit) for commit in own)
            if leaves:
                self._shorten(gaps, gap)
            if lacking := self._lacking(gap, gaps[gap]):
                if leaves or any(commit.token == eog for commit in own):
                    self._last_word.overruled.note(gap, self._gaps[gap].text(committed), self._witness[gap].text)
                self.stats.swaps += len(lacking) if leaves else 1
                return lacking if leaves else lacking[:1]
        return []

    def _leaves(self, view: GapView, commit: Commit) -> bool:
        """Whether a commit is of the first open slot, and in a line that the region does not take."""
        committed = fill_tokens(view, self._vocabulary.eog_id)
        return len(view.done) + commit.slot == len(committed) and self._gaps[commit.gap].leaves(
            (*committed, commit.token)
        )

    def _shorten(self, gaps: Sequence[GapView], gap: int) -> None:
        """Looks for a fill that ends sooner than the witness, without anything of the draft, better without names."""
        assert self._witness is not None
        head = self._gaps[gap].text(fill_tokens(gaps[gap], self._vocabulary.eog_id))
        queue = self._search.candidates(gaps, (), gap, known=self._witness[gap], bare=True)
        effort = Effort(INSIST_VERIFIES, INSIST_SECONDS, self._clock)
        found = joint_search({gap: queue}, self._witness, self._judge, effort)
        if found.whole is not None:
            ways = [(bool(made_up(head, way[gap].text)), len(way[gap].text)) for way in (found.whole, self._witness)]
            self._witness = found.whole if ways[0] < ways[1] else self._witness

    def _lacking(self, gap: int, view: GapView) -> list[Commit]:
        """The witness's tokens for the open slots of a block, up to the end of the fill."""
        assert self._witness is not None
        tokens = [*self._witness[gap].tokens, self._vocabulary.eog_id][len(view.done) :]
        pairs = zip(view.slots, tokens, strict=False)
        return [Commit(gap, slot, token) for slot, (own, token) in enumerate(pairs) if own is None]

    def finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        """The final verdict: a fresh parse of the whole, the indentation rules and the language's own oracle."""
        started = time.perf_counter()
        self._clock.begin(CALL_SECONDS, least=GRACE_SECONDS)
        self._take_prefixes(gaps)
        seen = self._seen or gaps
        verdict = self._last_word.verdict(gaps, seen, self._witness, attempts=self._attempts, truncate=truncate)
        self.stats.ms += (time.perf_counter() - started) * 1e3
        return verdict
