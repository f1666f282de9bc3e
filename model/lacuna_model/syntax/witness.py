"""The witness: commit only what agrees with a complete fill that has been verified.

Every state of the canvas can then be finished within its real budget, and the end result is the witness. The idea of
keeping the last verified look-ahead fill is LAVE's (arXiv 2602.00612); a fill between a left and a right context has
to satisfy both, as in Melcer et al. (arXiv 2402.17988). Here tree-sitter is the judge and the whole file the context.
"""

import time
from collections.abc import Iterator, Mapping, Sequence

from lacuna_model.constraint import Commit, ConstraintStats, GapView, TokenText, Verdict, fill_tokens
from lacuna_model.params import Region
from lacuna_model.syntax.beam import Effort, joint_search
from lacuna_model.syntax.candidates import Candidates, Fill, GapText
from lacuna_model.syntax.closing import Closer
from lacuna_model.syntax.document import Check, Document
from lacuna_model.syntax.draft import fixed_in_block, lay_out
from lacuna_model.syntax.languages import Language
from lacuna_model.syntax.region_rules import RegionRules
from lacuna_model.syntax.vocabulary import is_utf8, vocabulary_of

STEP_VERIFIES = 4
STEP_SECONDS = 0.002
# Without a witness nothing can be committed, and a deferral costs a whole step of the model (about 20 ms).
FIRST_VERIFIES = 64
FIRST_SECONDS = 0.020
LAST_VERIFIES = 400
LAST_SECONDS = 0.5
LINE_CUTS = 8
ATTEMPTS = 4
COST_OVERLAID = 0.3
COST_BEST_ONLY = 1.0
COST_COMMITTED_ONLY = 1.5
COST_ORIGINAL = 2.5
NO_FILL = "no valid fill was found within the budget; the text stays as it was"


class Judge:
    """Verifies texts for all gaps against the document, once each."""

    def __init__(self, document: Document | None, stats: ConstraintStats) -> None:
        self._document = document
        self._stats = stats
        self._known: dict[tuple[bytes, ...], Check] = {}

    def recall(self, texts: tuple[bytes, ...]) -> Check | None:
        """What an earlier check of these texts found."""
        return self._known.get(texts)

    def check(self, texts: tuple[bytes, ...], *, thorough: bool) -> Check:
        """One incremental check of these texts."""
        self._stats.verifies += 1
        check = self._document.check(texts, thorough=thorough) if self._document is not None else Check(())
        self._known[texts] = check
        return check

    def widen(self) -> bool:
        """Checks in the whole document from now on; False if it did before."""
        return self._document is not None and self._document.widen() and self._forget()

    def relax(self) -> bool:
        """Tolerates the original's faults near the gaps; False if there are none, or they were tolerated before."""
        return self._document is not None and self._document.relax() and self._forget()

    def _forget(self) -> bool:
        self._known.clear()
        return True


class SyntaxConstraint:
    """Keeps a file syntactically valid, and each region's own rules, while its gaps are denoised."""

    active = True

    def __init__(self, text: bytes, regions: Sequence[Region], language: Language | None, tokens: TokenText) -> None:
        self.stats = ConstraintStats()
        self._vocabulary = vocabulary_of(tokens)
        self._text = text
        spans = [(region.start, region.end) for region in regions]
        self._document = Document(text, spans, language) if language is not None else None
        self._judge = Judge(self._document, self.stats)
        self._gaps = [
            GapText(
                self._vocabulary,
                Closer(text[: region.start], text[region.end :], language.lexicon) if language is not None else None,
                RegionRules(region, text[region.end :]),
            )
            for region in regions
        ]
        self._original = [text[start:end] for start, end in spans]
        self._witness: list[Fill] | None = None
        self._attempts = 0

    @property
    def witness(self) -> tuple[str, ...] | None:
        """The verified complete fills that every committed token agrees with, as text."""
        return tuple(fill.text.decode() for fill in self._witness) if self._witness is not None else None

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> list[Commit]:
        """The proposed commits that a witness agrees with, or else the witness's own next token."""
        started = time.perf_counter()
        admitted = self._admit(gaps, proposal)
        spent = (time.perf_counter() - started) * 1e3
        self.stats.ms += spent
        self.stats.step_ms.append(spent)
        self.stats.vetoes += len(set(proposal) - set(admitted))
        self.stats.deferrals += not admitted
        return admitted

    def _admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> list[Commit]:
        if not proposal:
            return []
        stray = self._strayed(gaps)
        refused = {commit.gap for commit in proposal if not self._agrees(gaps, commit)}
        if stray:
            self._find(gaps, proposal, stray | refused)
        elif refused:
            self._renew(gaps, proposal, refused)
        if self._witness is None:
            return []
        admitted = [commit for commit in proposal if self._agrees(gaps, commit)]
        return admitted or self._swap(gaps, proposal)

    def _agrees(self, gaps: Sequence[GapView], commit: Commit) -> bool:
        if self._witness is None:
            return False
        tokens = self._witness[commit.gap].tokens
        position = len(gaps[commit.gap].done) + commit.slot
        if position == len(tokens):
            return commit.token == self._vocabulary.eog_id
        return position < len(tokens) and tokens[position] == commit.token

    def _strayed(self, gaps: Sequence[GapView]) -> set[int]:
        """The gaps whose committed tokens the witness does not hold; all of them where there is no witness."""
        if self._witness is None:
            return set(range(len(gaps)))
        return {gap for gap, fill in enumerate(self._witness) if not self._holds(gaps[gap], fill)}

    def _holds(self, view: GapView, fill: Fill) -> bool:
        eog, done = self._vocabulary.eog_id, len(view.done)
        fixed = fixed_in_block(view, eog)
        if view.closed and fill.tokens != tuple(fill_tokens(view, eog)):
            return False
        ends = {slot for slot, token in fixed.items() if token == eog}
        return (
            fill.tokens[:done] == view.done
            and all(done + slot == len(fill.tokens) for slot in ends)
            and all(
                fill.tokens[done + slot : done + slot + 1] == (token,)
                for slot, token in fixed.items()
                if slot not in ends
            )
        )

    def _find(self, gaps: Sequence[GapView], proposal: Sequence[Commit], which: set[int]) -> None:
        """Looks for a first witness, each time it is called a little further.

        What failed before is remembered, so that even with the same marginals a further attempt is a longer search.
        In the end it may leave what is broken around the gaps.
        """
        if self._attempts == ATTEMPTS:
            return
        self._attempts += 1
        if self._attempts == ATTEMPTS - 1:
            self._judge.widen()
        if self._attempts == ATTEMPTS:
            self._judge.relax()
        found = self._search(gaps, proposal, which)
        if found is not None:
            self._witness, self._attempts = found, 0

    def _search(self, gaps: Sequence[GapView], proposal: Sequence[Commit], which: set[int]) -> list[Fill] | None:
        held = [None if gap in which else fill for gap, fill in enumerate(self._witness or [None] * len(gaps))]
        queues = {gap: self._queue(gaps, proposal, gap) for gap in which}
        return joint_search(queues, held, self._judge, Effort(FIRST_VERIFIES, FIRST_SECONDS))

    def _renew(self, gaps: Sequence[GapView], proposal: Sequence[Commit], refused: set[int]) -> None:
        """Looks for a witness that holds what the present one refuses, for all gaps or else for the first."""
        assert self._witness is not None
        first = next(commit.gap for commit in proposal if commit.gap in refused)
        effort = Effort(STEP_VERIFIES - (len(refused) > 1), STEP_SECONDS)
        found = joint_search(
            {gap: self._queue(gaps, proposal, gap) for gap in refused}, self._witness, self._judge, effort
        )
        if found is None and len(refused) > 1 and not effort.late:
            effort.verifies = STEP_VERIFIES
            found = joint_search({first: self._queue(gaps, proposal, first)}, self._witness, self._judge, effort)
        if found is not None:
            self._witness = found

    def _queue(self, gaps: Sequence[GapView], proposal: Sequence[Commit], gap: int) -> Candidates:
        """A gap's candidates: with all that is proposed, with the best of it, with only what is committed."""
        view, eog = gaps[gap], self._vocabulary.eog_id
        queue = Candidates(view, self._gaps[gap])
        own = {commit.slot: commit.token for commit in reversed(proposal) if commit.gap == gap}
        best = dict(list(own.items())[-1:])
        fill = self._witness[gap] if self._witness is not None else None
        tails = [fill.closing] if fill is not None and fill.closing else []
        for base, overlay in ((0.0, own), (COST_BEST_ONLY, best), (COST_COMMITTED_ONLY, {})):
            draft = lay_out(view, overlay, eog)
            if draft is None or (base and overlay == own):
                continue
            queue.add(draft, base=base, tails=tails)
            if fill is not None and not draft.closed:
                queue.add_fill(_overlaid(fill.tokens, view, overlay, eog), base=base + COST_OVERLAID)
            if draft.kept == 0 and self._original[gap]:
                queue.add_fill(self._vocabulary.encode(self._original[gap]), base=base + COST_ORIGINAL)
        return queue

    def _swap(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> list[Commit]:
        """The witness's token for the first open slot, of the gap that was proposed first."""
        assert self._witness is not None
        for gap in dict.fromkeys([commit.gap for commit in proposal]):
            view, tokens = gaps[gap], self._witness[gap].tokens
            for slot, token in enumerate(view.slots):
                position = len(view.done) + slot
                if token is None and position <= len(tokens):
                    self.stats.swaps += 1
                    own = tokens[position] if position < len(tokens) else self._vocabulary.eog_id
                    return [Commit(gap, slot, own)]
        return []

    def finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        """The final verdict: a fresh parse of the whole, the indentation rules and the language's own oracle."""
        started = time.perf_counter()
        verdict = self._finish(gaps, truncate=truncate)
        self.stats.ms += (time.perf_counter() - started) * 1e3
        return verdict

    def _finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        reason = ""
        for texts in self._endings(gaps, truncate=truncate):
            reason = self._refusal(texts)
            if not reason:
                return Verdict("ok", tuple(text.decode() for text in texts))
        return Verdict("no_valid_fill", None, f"{NO_FILL} ({reason})" if reason else NO_FILL)

    def _endings(self, gaps: Sequence[GapView], *, truncate: bool) -> Iterator[tuple[bytes, ...]]:
        """Complete fills in the order they are wanted; the costly search comes last."""
        eog = self._vocabulary.eog_id
        committed = [self._vocabulary.text(fill_tokens(view, eog)) for view in gaps]
        open_gaps = [_is_open(view, eog) for view in gaps]
        if not any(open_gaps):
            yield tuple(gap.rules.cut(text) for gap, text in zip(self._gaps, committed, strict=True))
        elif truncate:
            yield from _line_cuts(committed, open_gaps)
        if not self._strayed(gaps):
            assert self._witness is not None
            yield tuple(fill.text for fill in self._witness)
        yield from self._last_search(gaps)
        if self._judge.widen():
            yield from self._last_search(gaps)
        if self._judge.relax():
            yield from self._last_search(gaps)

    def _last_search(self, gaps: Sequence[GapView]) -> Iterator[tuple[bytes, ...]]:
        effort = Effort(LAST_VERIFIES, LAST_SECONDS)
        queues = {gap: self._queue(gaps, (), gap) for gap in range(len(gaps))}
        while not effort.spent:
            found = joint_search(queues, [None] * len(gaps), self._judge, effort)
            if found is None:
                return
            yield tuple(fill.text for fill in found)

    def _refusal(self, texts: tuple[bytes, ...]) -> str:
        """Why these fills cannot be the result, or ""."""
        for gap, text in zip(self._gaps, texts, strict=True):
            if not is_utf8(text):
                return "a fill is not whole UTF-8"
            if not gap.rules.accepts(text):
                return "a fill breaks a rule of its region"
        if self._document is None:
            return ""
        if self._document.idle and list(texts) == self._original:
            return "the file is broken around the gaps"
        return "" if self._document.check_fresh(texts).valid else "a fill adds a syntax error"


def _overlaid(tokens: tuple[int, ...], view: GapView, overlay: Mapping[int, int], eog: int) -> tuple[int, ...]:
    """The witness's tokens with the proposed ones in their places."""
    changed = list(tokens)
    for slot, token in sorted(overlay.items()):
        position = len(view.done) + slot
        if token == eog:
            return tuple(changed[:position])
        changed[position : position + 1] = [token]
    return tuple(changed)


def _is_open(view: GapView, eog: int) -> bool:
    """Whether tokens are still to come."""
    if view.closed:
        return False
    for token in view.slots:
        if token is None or token == eog:
            return token is None
    return view.budget > 0


def _line_cuts(committed: Sequence[bytes], open_gaps: Sequence[bool]) -> Iterator[tuple[bytes, ...]]:
    """The committed texts with their unfinished ones cut at ever earlier lines."""
    texts = list(committed)
    for _ in range(LINE_CUTS):
        for gap, is_open in enumerate(open_gaps):
            if is_open:
                texts[gap] = texts[gap][: texts[gap].rfind(b"\n", 0, max(len(texts[gap]) - 1, 0)) + 1]
        yield tuple(texts)
        if not any(text for text, is_open in zip(texts, open_gaps, strict=True) if is_open):
            return
