"""The witness: commit only tokens that agree with a complete fill that was verified.

So the canvas can always be finished within its budget, and the result is the witness. Keeping the last verified fill
is the idea of LAVE (arXiv 2602.00612); Melcer et al. (arXiv 2402.17988) let it satisfy prefix and suffix.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import msgspec

from lacuna_model.core import work
from lacuna_model.core.constraint import Commit, ConstraintStats, GapView, Remask, TokenText, Verdict, fill_tokens
from lacuna_model.core.params import Region
from lacuna_model.languages.language import Language
from lacuna_model.syntax.broken.fallbacks import Fallbacks
from lacuna_model.syntax.broken.part import Part
from lacuna_model.syntax.broken.unfinished import document_of
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.region.draft import Fill, agrees, changed, holds, lacking, strayed, with_view
from lacuna_model.syntax.region.gap_text import gap_texts
from lacuna_model.syntax.region.region_rules import in_line
from lacuna_model.syntax.search.first_witness import FirstWitness
from lacuna_model.syntax.search.last_word import LastWord
from lacuna_model.syntax.search.queues import Queues
from lacuna_model.syntax.search.renewal import Renewal
from lacuna_model.syntax.search.search import ATTEMPTS, BARE_ATTEMPTS, Search
from lacuna_model.syntax.search.tentative import Tentative
from lacuna_model.syntax.search.verified import Verified
from lacuna_model.syntax.text.vocabulary import vocabulary_of

RENEW_SECONDS_ALL = 0.06  # of work, for all gaps together; the search of the last one is not cut short
CALL_SECONDS = 1.0  # of work, after which a call ends, since all other requests wait for it
GRACE_SECONDS = 0.3  # of real time, for ``finish`` after the deadline


class SyntaxConstraint:
    """Keeps a file syntactically valid, and the rules of each region, while its gaps are denoised.

    Fills have to repair a file that is broken around its gaps. If no such fill is found, errors of the original may
    stay, unless the constraint is ``strict``: then the verdict is no_valid_fill. ``deadline`` is a ``time.monotonic``
    instant.
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
        self._language, self._strict = language, strict
        self._clock = Clock(deadline)
        gap = (regions[0].start, regions[0].end) if len(regions) == 1 and not strict else None
        self._fallbacks = Fallbacks(text, gap, language, self._clock, in_line=in_line(regions))
        self._part: Part | None = None
        self._begin(text, regions)
        self._witness: list[Fill] | None = None
        self._seen: tuple[GapView, ...] = ()
        self._due: tuple[Sequence[GapView], Sequence[Commit]] = (), ()  # the gaps after admit, and delayed commits

    def _begin(self, text: bytes, regions: Sequence[Region], part: Part | None = None) -> None:
        """Build the document, the search and the last word for these regions, or for one ``part`` of the text."""
        self._regions = regions
        spans, language, clock = [(region.start, region.end) for region in regions], self._language, self._clock
        self._document = part.document if part is not None else None
        if self._document is None and language is not None:
            self._document = document_of(text, spans, language, clock, in_line=in_line(regions))
        self._judge = Verified(self._document, self.stats)
        self._gaps = gap_texts(text, regions, self._vocabulary, self._document)
        original = [text[start:end] for start, end in spans]
        queues = Queues(self._vocabulary, self._gaps, original)
        self._search = Search(self._document, self._judge, queues, clock)
        self._last_word = LastWord(
            text, regions, self._document, self._gaps, self._judge, self._search, clock, strict=self._strict, part=part
        )
        self._first = FirstWitness(self._search, self._judge, self._last_word, clock, len(regions), strict=self._strict)
        self._renewal = Renewal(self._search, self._judge, clock, self._vocabulary.eog_id)
        self._tentative = Tentative(self._gaps, self._vocabulary.eog_id)

    @property
    def witness(self) -> tuple[str, ...] | None:
        """The verified complete fills that every committed token agrees with, as text; None without a witness."""
        return tuple(fill.text.decode() for fill in self._witness) if self._witness is not None else None

    def foresee(self, gaps: Sequence[GapView]) -> list[str]:
        """Look for fills that are valid together before any token is proposed; "" for gaps without one in time."""
        self._clock.begin(CALL_SECONDS)
        self._take_prefixes(gaps)
        self._seen = tuple(gaps)
        while self._witness is None and self._first.attempts < BARE_ATTEMPTS and not self._clock.over:
            self._witness = self._find_first(gaps, (), range(len(gaps)))
        if self._witness is None:
            self._clock.begin(CALL_SECONDS)
            self._witness = self._find_first(gaps, (), range(len(gaps))) if self._leave_out(gaps) else None
        self._read_ahead(gaps)
        return [fill.text.decode() if fill is not None else "" for fill in self._witness or self._first.partial]

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        """Return the proposed commits that a witness agrees with or that may be tentative, else other tokens."""
        self.follow()
        self._clock.begin(CALL_SECONDS)
        self._take_prefixes(gaps)
        own: dict[int, list[Commit]] = {}
        for commit in proposal:
            own.setdefault(commit.gap, []).append(commit)
        admitted = self._admit(gaps, own)
        after = [changed(view, [one for one in admitted if one.gap == gap]) for gap, view in enumerate(gaps)]
        taken = {(commit.gap, commit.slot, commit.token) for commit in admitted if isinstance(commit, Commit)}
        refused = [commit for commit in proposal if (commit.gap, commit.slot, commit.token) not in taken]
        self._due = after, [commit for commit in refused if after[commit.gap].slots[commit.slot] is None]
        self.stats.vetoes += len(set(refused))
        self.stats.deferrals += not admitted
        return admitted

    def follow(self) -> None:
        """Look for witnesses that hold tentative tokens, commits that had to wait, and commits that are likely next.

        Any thread may call it once after each ``admit``, while the model runs.
        """
        (gaps, waiting), self._due = self._due, ((), ())
        self._clock.begin(CALL_SECONDS)
        for gap in range(len(gaps) if self._witness is not None else 0):
            if self._is_ahead(gaps, gap):
                self._catch_up(gaps, gap)
            if own := [commit for commit in waiting if commit.gap == gap]:
                self._renew(gaps, own, gap)
        self._read_ahead(gaps)
        for gap in range(len(gaps)):
            if self._witness is not None:
                self._witness = self._renewal.expect(gaps, gap, self._witness)

    def confirms(self, gap: int, view: GapView) -> bool:
        """Whether a witness has a closed fill of a gap, the witness that there is or one that is found now."""
        self.follow()
        if self._witness is not None and self._seen and not self._holds(view, self._witness[gap]):
            self._renew(with_view(self._seen, gap, view), (), gap)
        return self._witness is not None and self._holds(view, self._witness[gap])

    def close(self) -> None:
        """End all searches, also those that begin later."""
        self._clock.stop()

    def _read_ahead(self, gaps: Sequence[GapView]) -> None:
        """Let the grammar read the committed tokens now, so that it only has to read the next ones later."""
        for gap, view in zip(self._gaps, gaps, strict=False):
            if self._witness is not None and not view.closed and not self._clock.over:
                gap.reads(tuple(fill_tokens(view, self._vocabulary.eog_id)))

    def _admit(self, gaps: Sequence[GapView], own: Mapping[int, Sequence[Commit]]) -> list[Commit | Remask]:
        """Return the admitted commits of each gap's ``own`` ones, or other tokens in their place."""
        if not own:
            return []
        self._seen = tuple(gaps)
        if stray := strayed(gaps, self._witness, self._vocabulary.eog_id):
            self._witness = self._find_first(gaps, [one for each in own.values() for one in each], stray)
        if self._witness is None:
            return []
        admitted = [one for gap, commits in own.items() for one in self._pass(gaps, commits, gap)]
        if admitted or (admitted := [*self._insist(gaps, own)]):
            return admitted
        ahead = next((gap for gap in own if self._is_ahead(gaps, gap)), None)
        if ahead is not None:
            return self._take_back(gaps, ahead)
        return [*(self._ends(gaps, next(iter(own.values()))[0]) or self._swap(gaps, own))]

    def _find_first(
        self, gaps: Sequence[GapView], proposal: Sequence[Commit], which: Collection[int]
    ) -> list[Fill] | None:
        """Look for a first witness, if need be in the sound part of a broken text; else try the part's neutral fill."""
        self._leave_out(gaps)
        found = self._first.find(gaps, proposal, which, self._witness)
        if found is None and self._part and (self.leaves_out or self._first.attempts >= ATTEMPTS):
            found = self._first.offer(gaps[0], self._gaps[0], self._part.neutral)
        if found is None and self._first.attempts >= ATTEMPTS and self._tolerate(gaps):
            found = self._witness
        return found

    @property
    def leaves_out(self) -> bool:
        """Whether fills are checked against the errors that the text has whatever they are."""
        return self._part is not None and self._part.document is not None

    def _leave_out(self, gaps: Sequence[GapView]) -> bool:
        """Switch to the sound part of a broken text if the search found nothing; returns whether it did."""
        part = None
        if self._witness is None and self._first.attempts >= BARE_ATTEMPTS:
            part = self._fallbacks.sound()
        elif self._witness is None and self._is_unread_elsewhere():
            part = self._fallbacks.spared()
        if part is not None:
            self._part = part
            if self.leaves_out:
                self._check_in(part, gaps)
        return self.leaves_out

    def _is_unread_elsewhere(self) -> bool:
        """Whether the grammar cannot read the text around the gaps: it cannot tell how to complete a fill there."""
        document = self._document
        return document is not None and not document.language.columns and document.has_errors_anyway

    def _tolerate(self, gaps: Sequence[GapView], *, least: float = 0.0) -> bool:
        """Tolerate the errors that the text has whatever its gap holds, once; returns whether it does."""
        self._clock.begin(CALL_SECONDS, least=least)
        part = self._fallbacks.tolerant() if self._witness is None else None
        if part is not None:
            self._check_in(part, gaps)
            self._witness = self._first.offer(gaps[0], self._gaps[0], part.neutral)
        return part is not None

    def _check_in(self, part: Part, gaps: Sequence[GapView]) -> None:
        """Check all further fills in a part of the text."""
        start, end = part.gap
        self._part = part
        self._begin(part.text, [msgspec.structs.replace(self._regions[0], start=start, end=end)], part)
        self._take_prefixes(gaps)

    def _pass(self, gaps: Sequence[GapView], own: Sequence[Commit], gap: int) -> Sequence[Commit | Remask]:
        """Return the commits that need no search: tokens of the witness, else tokens that the grammar can read next.

        If no more tentative tokens may follow and no witness has the proposed ones, they are taken back.
        """
        assert self._witness is not None
        view, witness = gaps[gap], self._witness[gap]
        passed = [commit for commit in own if self._agrees(gaps, commit)] or self._tentative.takes(own, view, witness)
        if passed or not self._is_ahead(gaps, gap) or self._tentative.goes_on(gap, view, witness):
            return passed
        self._renew(gaps, own, gap)
        if self._is_ahead(gaps, gap):
            return self._take_back(gaps, gap)
        return [commit for commit in own if self._agrees(gaps, commit)]

    def _take_back(self, gaps: Sequence[GapView], gap: int) -> list[Commit | Remask]:
        """Mask the tentative tokens of a gap and commit the witness's token in the first of their slots."""
        assert self._witness is not None
        self._find_other(gaps, gap)
        if not self._is_ahead(gaps, gap):  # the new witness holds them, and its next token confirms them
            return [*self._lacking(gap, gaps[gap])[:1]]
        back = self._tentative.take_back(gap, gaps[gap], self._witness[gap])
        self.stats.swaps += 1
        return [back, *self._lacking(gap, changed(gaps[gap], [back]))[:1]]

    def _take_prefixes(self, gaps: Sequence[GapView]) -> None:
        for gap, view in zip(self._gaps, gaps, strict=True):
            gap.prefix = view.prefix

    def _agrees(self, gaps: Sequence[GapView], commit: Commit) -> bool:
        assert self._witness is not None
        return agrees(self._witness[commit.gap].tokens, commit, gaps[commit.gap], self._vocabulary.eog_id)

    def _is_ahead(self, gaps: Sequence[GapView], gap: int) -> bool:
        """Whether a gap has tentative tokens that the witness does not hold, and that can still be taken back."""
        assert self._witness is not None
        view, fill = gaps[gap], self._witness[gap]
        return view.tentative and not self._holds(view, fill) and bool(self._tentative.run(view, fill))

    def _holds(self, view: GapView, fill: Fill) -> bool:
        return holds(fill.tokens, view, self._vocabulary.eog_id)

    def _catch_up(self, gaps: Sequence[GapView], gap: int) -> None:
        """Look for a witness that holds the tentative tokens of a gap, or else as many of them as possible.

        If no more may follow them, they will be taken back, so look for a witness with another first token too.
        """
        assert self._witness is not None
        self._renew(gaps, (), gap)
        run, known = self._tentative.run(gaps[gap], self._witness[gap]), None
        while len(run) > 1 and run != known:
            self._renew(with_view(gaps, gap, changed(gaps[gap], [Remask(gap, run[1])])), (), gap)
            run, known = self._tentative.run(gaps[gap], self._witness[gap]), run
        if run and not self._tentative.goes_on(gap, gaps[gap], self._witness[gap]):
            self._find_other(gaps, gap)

    def _find_other(self, gaps: Sequence[GapView], gap: int) -> None:
        """Look for a witness with the model's next best token in place of a gap's first tentative one."""
        assert self._witness is not None
        first = self._tentative.run(gaps[gap], self._witness[gap])[0]
        token = gaps[gap].slots[first]
        assert token is not None
        masked, other = with_view(gaps, gap, changed(gaps[gap], [Remask(gap, first)])), Commit(gap, first, token)
        if not self._ends(masked, other):
            self._renew(masked, [other], gap)

    def _ends(self, gaps: Sequence[GapView], refused: Commit) -> list[Commit]:
        """The end in place of a refused token that the suffix begins with, if a witness ends there; else nothing."""
        end, piece = replace(refused, token=self._vocabulary.eog_id), self._vocabulary.piece(refused.token)
        if begins := self._gaps[refused.gap].rules.is_followed_by(piece):
            self._renew(gaps, [end], refused.gap)
        return [end] if begins and self._agrees(gaps, end) else []

    def _renew(self, gaps: Sequence[GapView], own: Sequence[Commit], gap: int) -> None:
        assert self._witness is not None
        self._witness = self._renewal.find(gaps, own, gap, self._witness)

    def _insist(self, gaps: Sequence[GapView], own: Mapping[int, Sequence[Commit]]) -> list[Commit]:
        """Search for a witness for each gap's commits, or for the first of them; return those that it agrees with.

        Without this search the step would commit none of the proposed tokens. A lost step costs more than the search,
        and a token of the witness may not be what the model means.
        """
        until = work.mark(RENEW_SECONDS_ALL)
        admitted: list[Commit] = []
        for gap, commits in own.items():
            for wanted in dict.fromkeys((tuple(commits), tuple(commits[:1]))):
                self._renew(gaps, wanted, gap)
                if agreed := [commit for commit in commits if self._agrees(gaps, commit)]:
                    admitted += agreed
                    break
            if work.reached(until):
                break
        return admitted

    def _swap(self, gaps: Sequence[GapView], own: Mapping[int, Sequence[Commit]]) -> list[Commit]:
        """The witness's token for the first open slot of the gap that was proposed first.

        If the model would continue in a line beyond the region's limit, all missing tokens are committed. Otherwise it
        would write into the fill's last line the text that belongs below.
        """
        assert self._witness is not None
        eog = self._vocabulary.eog_id
        for gap, commits in own.items():
            committed = fill_tokens(gaps[gap], eog)
            leaves = any(self._gaps[gap].leaves_with(gaps[gap], commit) for commit in commits)
            if leaves:
                self._witness = self._renewal.shorter(gaps, gap, self._witness, self._gaps[gap].text(committed))
            if missing := self._lacking(gap, gaps[gap]):
                if leaves or any(commit.token == eog for commit in commits):
                    self._last_word.overruled.note(gap, self._gaps[gap].text(committed), self._witness[gap].text)
                self.stats.swaps += len(missing) if leaves else 1
                return missing if leaves else missing[:1]
        return []

    def _lacking(self, gap: int, view: GapView) -> list[Commit]:
        assert self._witness is not None
        return lacking(self._witness[gap], view, gap, self._vocabulary.eog_id)

    def finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        """The final verdict: a fresh parse of the whole file, the indentation rules and the language's own compiler.

        With ``truncate`` an unfinished fill may end at a line.
        """
        self._clock.begin(CALL_SECONDS, least=GRACE_SECONDS)
        self._take_prefixes(gaps)
        verdict = self._verdict(gaps, truncate=truncate)
        if verdict.fills is None:
            self._witness = None
            is_other = self._tolerate(gaps, least=GRACE_SECONDS)
            verdict = self._verdict(gaps, truncate=truncate) if is_other else verdict
        return verdict

    def _verdict(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        seen, attempts = self._seen or gaps, self._first.attempts
        return self._last_word.verdict(gaps, seen, self._witness, attempts=attempts, truncate=truncate)
