"""The witness: commit only tokens that agree with a complete fill that was verified.

So the canvas can always be finished within its budget, and the result is the witness. Keeping the last verified fill
is the idea of LAVE (arXiv 2602.00612); Melcer et al. (arXiv 2402.17988) let it satisfy prefix and suffix.
"""

import time
from collections.abc import Collection, Mapping, Sequence

import msgspec

from lacuna_model.core.constraint import Commit, ConstraintStats, GapView, Remask, TokenText, Verdict, fill_tokens
from lacuna_model.core.params import Region
from lacuna_model.languages.language import Language
from lacuna_model.syntax.check.sound_part import Part, sound_part
from lacuna_model.syntax.check.unfinished import document_of
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.region.draft import Fill, agrees, changed, holds, with_view
from lacuna_model.syntax.region.gap_text import gap_texts
from lacuna_model.syntax.region.region_rules import in_line
from lacuna_model.syntax.search.first_witness import FirstWitness
from lacuna_model.syntax.search.last_word import LastWord
from lacuna_model.syntax.search.queues import Queues
from lacuna_model.syntax.search.refused_ends import made_up
from lacuna_model.syntax.search.renewal import Renewal
from lacuna_model.syntax.search.search import ATTEMPTS, BARE_ATTEMPTS, Search
from lacuna_model.syntax.search.tentative import Tentative
from lacuna_model.syntax.search.verified import Verified
from lacuna_model.syntax.text.vocabulary import vocabulary_of

RENEW_SECONDS_ALL = 0.06  # for all gaps together; the search of the last one is not cut short
CALL_SECONDS = 1.0  # a call ends after this time, since all other requests wait for it
GRACE_SECONDS = 0.3  # for ``finish`` after the deadline


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
        self._may_leave_out = language is not None and len(regions) == 1 and not strict
        self._part: Part | None = None
        self._begin(text, regions)
        self._witness: list[Fill] | None = None
        self._seen: tuple[GapView, ...] = ()
        self._due: tuple[Sequence[GapView], Sequence[Commit]] = (), ()  # the gaps after admit, and delayed commits

    def _begin(self, text: bytes, regions: Sequence[Region], part: Part | None = None) -> None:
        """Build the document, the search and the last word for these regions, or for one ``part`` of the text."""
        self._text, self._regions = text, regions
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
        """Look for fills that are valid together before any token is proposed.

        Returns one text per gap, "" for gaps without a fill within the time of a call.
        """
        self._clock.begin(CALL_SECONDS)
        self._take_prefixes(gaps)
        while self._witness is None and self._first.attempts < BARE_ATTEMPTS and not self._clock.over:
            self._witness = self._find_first(gaps, (), range(len(gaps)))
        if self._witness is None:
            self._clock.begin(CALL_SECONDS)
            self._witness = self._find_first(gaps, (), range(len(gaps))) if self._leave_out(gaps) else None
        self._read_ahead(gaps)
        return [fill.text.decode() if fill is not None else "" for fill in self._witness or self._first.partial]

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        """Return the proposed commits that a witness agrees with or that may be tentative, else other tokens.

        The next call begins with ``follow``, which looks for a witness that holds the tentative tokens.
        """
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
        """Whether a witness holds the committed tokens of a gap."""
        self.follow()
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
        if stray := self._strayed(gaps):
            self._witness = self._find_first(gaps, [one for each in own.values() for one in each], stray)
        if self._witness is None:
            return []
        admitted = [one for gap, commits in own.items() for one in self._pass(gaps, commits, gap)]
        if admitted or (admitted := [*self._insist(gaps, own)]):
            return admitted
        ahead = next((gap for gap in own if self._is_ahead(gaps, gap)), None)
        return [*self._swap(gaps, own)] if ahead is None else self._take_back(gaps, ahead)

    def _find_first(
        self, gaps: Sequence[GapView], proposal: Sequence[Commit], which: Collection[int]
    ) -> list[Fill] | None:
        """Look for a first witness, if need be in the sound part of a broken text; else try the part's neutral fill."""
        self._leave_out(gaps)
        found = self._first.find(gaps, proposal, which, self._witness)
        if found is None and self._part and (self.leaves_out or self._first.attempts >= ATTEMPTS):
            found = self._first.offer(gaps[0], self._gaps[0], self._part.neutral)
        return found

    @property
    def leaves_out(self) -> bool:
        """Whether fills are checked in a sound part of the text, since the rest is broken whatever they are."""
        return self._part is not None and self._part.document is not None

    def _leave_out(self, gaps: Sequence[GapView]) -> bool:
        """Switch to the sound part of a broken text if the search found nothing; returns whether it did."""
        if self._witness is not None or self._first.attempts < BARE_ATTEMPTS or not self._may_leave_out:
            return False
        self._may_leave_out, region, language = False, self._regions[0], self._language
        assert language is not None
        gap, is_line = (region.start, region.end), in_line(self._regions)
        self._part = part = sound_part(self._text, gap, language, self._clock, in_line=is_line)
        if part is not None and part.document is not None:
            start, end = part.gap
            self._begin(part.text, [msgspec.structs.replace(region, start=start, end=end)], part)
            self._take_prefixes(gaps)
        return self.leaves_out

    def _pass(self, gaps: Sequence[GapView], own: Sequence[Commit], gap: int) -> Sequence[Commit | Remask]:
        """Return the commits that need no search: tokens of the witness, else tokens that the grammar can read next.

        If no more tentative tokens may follow, a search looks for a witness with the proposed tokens. If it finds none,
        the tentative tokens are taken back.
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

    def _strayed(self, gaps: Sequence[GapView]) -> set[int]:
        """The gaps whose committed tokens the witness does not hold; all gaps without a witness.

        The witness need not hold tentative tokens as long as their gap is open.
        """
        if self._witness is None:
            return set(range(len(gaps)))
        settled = (gap for gap, view in enumerate(gaps) if view.closed or not view.tentative)
        return {gap for gap in settled if not self._holds(gaps[gap], self._witness[gap])}

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
        masked = with_view(gaps, gap, changed(gaps[gap], [Remask(gap, first)]))
        self._renew(masked, [Commit(gap, first, token)], gap)

    def _renew(self, gaps: Sequence[GapView], own: Sequence[Commit], gap: int) -> None:
        assert self._witness is not None
        self._witness = self._renewal.find(gaps, own, gap, self._witness)

    def _insist(self, gaps: Sequence[GapView], own: Mapping[int, Sequence[Commit]]) -> list[Commit]:
        """Search for a witness for each gap's commits, or for the first of them; return those that it agrees with.

        Without this search the step would commit none of the proposed tokens. A lost step costs more than the search,
        and a token of the witness may not be what the model means.
        """
        started = time.thread_time()
        admitted: list[Commit] = []
        for gap, commits in own.items():
            for wanted in dict.fromkeys((tuple(commits), tuple(commits[:1]))):
                self._renew(gaps, wanted, gap)
                if agreed := [commit for commit in commits if self._agrees(gaps, commit)]:
                    admitted += agreed
                    break
            if time.thread_time() - started > RENEW_SECONDS_ALL:
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
            leaves = any(self._leaves(gaps[gap], commit) for commit in commits)
            if leaves:
                self._shorten(gaps, gap)
            if lacking := self._lacking(gap, gaps[gap]):
                if leaves or any(commit.token == eog for commit in commits):
                    self._last_word.overruled.note(gap, self._gaps[gap].text(committed), self._witness[gap].text)
                self.stats.swaps += len(lacking) if leaves else 1
                return lacking if leaves else lacking[:1]
        return []

    def _leaves(self, view: GapView, commit: Commit) -> bool:
        """Whether a commit is for the first open slot and in a line beyond the region's limit."""
        committed = fill_tokens(view, self._vocabulary.eog_id)
        return len(view.done) + commit.slot == len(committed) and self._gaps[commit.gap].leaves(
            (*committed, commit.token)
        )

    def _shorten(self, gaps: Sequence[GapView], gap: int) -> None:
        """Replace the witness by a fill without the model's draft if that has no made-up names or is shorter."""
        assert self._witness is not None
        head = self._gaps[gap].text(fill_tokens(gaps[gap], self._vocabulary.eog_id))
        found = self._renewal.bare(gaps, gap, self._witness) or self._witness
        ways = (self._witness, found)
        self._witness = min(ways, key=lambda way: (bool(made_up(head, way[gap].text)), len(way[gap].text)))

    def _lacking(self, gap: int, view: GapView) -> list[Commit]:
        """The witness's tokens for the open slots of a block, up to the end of the fill."""
        assert self._witness is not None
        tokens = [*self._witness[gap].tokens, self._vocabulary.eog_id][len(view.done) :]
        pairs = zip(view.slots, tokens, strict=False)
        return [Commit(gap, slot, token) for slot, (own, token) in enumerate(pairs) if own is None]

    def finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        """The final verdict: a fresh parse of the whole file, the indentation rules and the language's own compiler.

        With ``truncate`` an unfinished fill may end at a line.
        """
        self._clock.begin(CALL_SECONDS, least=GRACE_SECONDS)
        self._take_prefixes(gaps)
        seen, attempts = self._seen or gaps, self._first.attempts
        return self._last_word.verdict(gaps, seen, self._witness, attempts=attempts, truncate=truncate)
