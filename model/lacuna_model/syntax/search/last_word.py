"""The last word on a request's fills: checks complete fills afresh in order of preference, costly searches last."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from lacuna_model.core.constraint import GapView, Verdict, fill_tokens
from lacuna_model.core.params import Region
from lacuna_model.syntax.broken.part import Part
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.region.draft import Fill
from lacuna_model.syntax.region.gap_text import GapText
from lacuna_model.syntax.search.refused_ends import RefusedEnds
from lacuna_model.syntax.search.search import ATTEMPTS, BARE_ATTEMPTS, Search
from lacuna_model.syntax.search.verified import Verified

LINE_CUTS = 8
NO_FILL = "no valid fill was found within the budget; the text stays as it was"


class LastWord:
    """Decides which complete fills are the result of a request over ``regions`` of a ``text``.

    Where none is valid, errors around the gaps may stay, unless that is ruled out (``strict``). In a ``part`` of a
    text, a fill may add no error to the whole.
    """

    def __init__(
        self,
        text: bytes,
        regions: Sequence[Region],
        document: Document | None,
        gaps: Sequence[GapText],
        judge: Verified,
        search: Search,
        clock: Clock,
        *,
        strict: bool,
        part: Part | None = None,
    ) -> None:
        self._original = [text[region.start : region.end] for region in regions]
        self._document = document
        self._gaps = gaps
        self._judge = judge
        self._search = search
        self._clock = clock
        self._strict = strict
        self._adds_error = part.adds_error if part is not None else None
        lexicon = document.language.lexicon if document is not None else None
        self.overruled = RefusedEnds([text[region.end :] for region in regions], lexicon)

    def verdict(
        self,
        gaps: Sequence[GapView],
        seen: Sequence[GapView],
        witness: Sequence[Fill] | None,
        *,
        attempts: int,
        truncate: bool,
    ) -> Verdict:
        """Return the first complete fills that are valid, or ``no_valid_fill``.

        ``seen`` are the gaps as they were with their last probabilities, ``attempts`` the number of searches for a
        first witness. With ``truncate`` an unfinished fill may end at a line.
        """
        reason = ""
        for texts in self._endings(gaps, seen, witness, attempts, truncate=truncate):
            reason = self.refusal(texts)
            if not reason:
                return Verdict("ok", tuple(text.decode() for text in texts))
            self._judge.refuse(texts)
        return Verdict("no_valid_fill", None, f"{NO_FILL} ({reason})" if reason else NO_FILL)

    def refusal(self, texts: Sequence[bytes], *, final: bool = True) -> str:
        """Return why these fills cannot be the result, or ""; unless ``final``, a check of a part may decide."""
        if not all(gap.accepts(text) for gap, text in zip(self._gaps, texts, strict=True)):
            return "a fill breaks a rule of its region"
        if self._document is None:
            return ""
        if self._document.idle and list(texts) == self._original:
            return "the file is broken around the gaps"
        check = self._document.check_fresh if final else self._document.check_soon
        is_valid = check(texts).valid and not (self._adds_error is not None and self._adds_error(texts[0]))
        return "" if is_valid else "a fill adds a syntax error"

    def _endings(
        self,
        gaps: Sequence[GapView],
        seen: Sequence[GapView],
        witness: Sequence[Fill] | None,
        attempts: int,
        *,
        truncate: bool,
    ) -> Iterator[tuple[bytes, ...]]:
        """Complete fills in order of preference."""
        eog = self._gaps[0].vocabulary.eog_id
        committed = [gap.text(fill_tokens(view, eog)) for gap, view in zip(self._gaps, gaps, strict=True)]
        open_gaps = [is_open(view, eog) for view in gaps]
        whole = [fill.text for fill in witness] if witness is not None else None
        if not any(open_gaps):
            yield from self._without_made_up(committed, whole) if whole is not None else ()
            yield tuple(committed)
        elif truncate:
            yield from takewhile(lambda _: not self._clock.over, line_cuts(committed, open_gaps))
        if whole is not None:  # verified, even if the loop has cut a fill short since
            yield tuple(whole)
        views = [latest(view, one) for view, one in zip(gaps, seen, strict=True)]
        hard = attempts < BARE_ATTEMPTS  # else this search has failed before
        yield from self._search.exhaustive(views, hard=hard)
        if self._judge.widen():
            yield from self._search.exhaustive(views, hard=hard)
        hard = attempts < ATTEMPTS  # else the last attempt has failed at this too
        if self._judge.displace():
            yield from self._search.exhaustive(views, hard=hard)
        if not self._strict and self._judge.relax():  # of fills that repair nothing, only the model's own are useful
            yield from self._search.exhaustive(views, hard=False, drafts_only=True)

    def _without_made_up(self, committed: Sequence[bytes], whole: Sequence[bytes]) -> Iterator[tuple[bytes, ...]]:
        """The witness without the text that was made up to end its fills, as far as it stays valid."""
        texts = list(whole)
        for gap, head in enumerate(committed):
            self.overruled.note(gap, head, texts[gap])  # the loop may have ended the fill
            for cut in self.overruled.cuts(gap, texts[gap]):
                shorter = [*texts[:gap], cut, *texts[gap + 1 :]]
                if self._gaps[gap].holds(cut) and not self.refusal(shorter, final=False):
                    texts = shorter
                    break
        if texts != whole:
            yield tuple(texts)


def latest(view: GapView, seen: GapView) -> GapView:
    """Return a gap as it was ``seen`` with its last probabilities, if no token came since; else ``view``."""
    return seen if (seen.done, seen.slots, seen.closed) == (view.done, view.slots, view.closed) else view


def is_open(view: GapView, eog: int) -> bool:
    """Whether tokens are still to come."""
    if view.closed:
        return False
    for token in view.slots:
        if token is None or token == eog:
            return token is None
    return view.budget > 0


def line_cuts(committed: Sequence[bytes], open_gaps: Sequence[bool]) -> Iterator[tuple[bytes, ...]]:
    """Yield the committed texts with the unfinished ones cut at ever earlier lines."""
    texts = list(committed)
    for _ in range(LINE_CUTS):
        for gap, unfinished in enumerate(open_gaps):
            if unfinished:
                texts[gap] = texts[gap][: texts[gap].rfind(b"\n", 0, max(len(texts[gap]) - 1, 0)) + 1]
        yield tuple(texts)
        if not any(text for text, unfinished in zip(texts, open_gaps, strict=True) if unfinished):
            return
