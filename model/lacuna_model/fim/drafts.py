"""Drafts for a gap, which the model verifies in its next pass.

They come from the project, from a smaller model or what the model itself said in mask rows, and, where a text is
rewritten or was taken back, from that text. Each source proposes a token for the next slot, with a probability. The
likeliest one is drafted, and all go on from there. A draft ends where the next slot would not pay for its row of the
pass.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.context import Layout
from lacuna_model.fim.costs import AcceptanceRates, Ahead, DraftedToken, PassCosts
from lacuna_model.prior.index import MAX_MATCH, IndexedDocuments, Segment, longest_match

# Shorter matches in the project are ignored.
LEAST_MATCH = 3
# Where a proposal is so likely, no other source is asked, and a smaller model drafts nothing.
SURE = 0.9
# Less likely slots are not drafted even where a row costs nothing.
LEAST_PROBABILITY = 0.02
# Where so many tokens agree with the old text, the longest agreement counts; below it, the fewest edits.
SURE_MATCH = 3
# Longer agreements are as good as one of this length.
MAX_COMPARED = 12
# The probability that the old text goes on is (m + AGREED) / (m + AGREED + 1) after m tokens that agreed.
AGREED = 0.4
# The beginning counts as so many tokens that agreed.
AGREED_AT_START = 8


class OldTextDrafts:
    """Continues a fill as another text for its gap goes on: the ``old`` one that stood there, or was taken back.

    The tokens written so far are aligned with the old ones. For each of the n + 1 places between those, ``_matched``
    has how many of the last written tokens are those before the place, and ``_edits`` the fewest insertions, deletions
    and replacements that turn the old tokens up to the place into the written ones (Levenshtein distance).

    A token that was written in place of an old one is expected in place of its further occurrences, too, until an old
    one stays: ``_news`` has what is expected instead of each old token.
    """

    def __init__(self, old: Sequence[int]) -> None:
        self._old = np.asarray(old, dtype=np.int64)
        self._places = np.arange(len(old) + 1)
        self._begin()

    def _begin(self) -> None:
        self._written: tuple[int, ...] = ()
        self._edits: NDArray[np.int64] = self._places.copy()
        self._matched: NDArray[np.int64] = np.zeros_like(self._places)
        self._matched[0] = AGREED_AT_START
        self._news = self._old
        self._replaced: tuple[int, int] | None = None  # the place and the token of a change that may be a replacement

    def follow(self, written: Sequence[int]) -> None:
        """Align all ``written`` tokens; those that were aligned before cost nothing."""
        if tuple(written[: len(self._written)]) != self._written:
            self._begin()
        for token in written[len(self._written) :]:
            self.take(token)

    def take(self, token: int) -> None:
        """Align one more token."""
        self._learn(token)
        self._written = (*self._written, token)
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

    def proposal(self) -> DraftedToken | None:
        """The next old token, or what replaces it; the longer both texts have agreed, the more certain."""
        place = self.place
        if place == len(self._old):
            return None
        agreed = float(self._matched[place])
        return DraftedToken(int(self._news[place]), (agreed + AGREED) / (agreed + AGREED + 1), "old")


class ProjectDrafts:
    """Continues a fill as the longest match in the project continues."""

    def __init__(self, known: Sequence[Segment], text: Sequence[int]) -> None:
        self._known, self._text = known, list(text[-MAX_MATCH:])
        self._match = longest_match(known, self._text)

    def proposal(self) -> DraftedToken | None:
        """The most frequent continuation; longer matches are more certain."""
        if self._match is None or self._match.length < LEAST_MATCH:
            return None
        token, share = self._match.likeliest()
        return DraftedToken(token, share * self._match.length / (self._match.length + 2), "project")

    def take(self, token: int) -> None:
        """Follow ``token``; where no place of the match has it, the longest match is searched again."""
        self._text.append(token)
        self._match = (self._match and self._match.follow(token)) or longest_match(self._known, self._text)


@dataclass(slots=True)
class WrittenFill:
    """A fill that is drafted for: the tokens ``written``, and how many more may follow (``room``).

    ``guess`` is what was taken back, ``run`` what masks say of the next slots, those of the model or a smaller one's.
    """

    written: Sequence[int]
    room: int
    guess: Sequence[int] = ()
    run: Sequence[DraftedToken] = ()


class RunDrafts:
    """Continues a fill by a run of drafted tokens, those of the next slots."""

    def __init__(self, run: Sequence[DraftedToken]) -> None:
        self._run = run
        self._next = 0

    def proposal(self) -> DraftedToken | None:
        """The token of the next slot."""
        return self._run[self._next] if self._next < len(self._run) else None

    def take(self, token: int) -> None:
        """Go on while the fill is that run."""
        goes_on = self._next < len(self._run) and self._run[self._next].token == token
        self._next = self._next + 1 if goes_on else len(self._run)


Proposes = ProjectDrafts | RunDrafts | OldTextDrafts


class Drafts:
    """Drafts the next tokens of every gap of a layout."""

    def __init__(
        self,
        layout: Layout,
        known: Sequence[Segment],
        costs: PassCosts,
        rates: AcceptanceRates,
        specials: frozenset[int],
        masks: int = 0,
    ) -> None:
        """``known`` are the segments of the project; without any, the project drafts nothing.

        The model may read so many ``masks`` behind the draft of each fill.
        """
        self._layout = layout
        self._project = self._known = known
        self._costs = costs
        self._rates = rates
        self._specials = specials
        self._masks = masks
        self._aligned: dict[tuple[int, tuple[int, ...]], OldTextDrafts] = {}

    def draft(self, gap: int, fill: WrittenFill, rows: int) -> list[DraftedToken]:
        """The tokens that may follow those written in a fill, in a pass that has ``rows`` rows so far."""
        sources = self._sources(gap, fill)
        drafted: list[DraftedToken] = []
        likely = 1.0
        while sources and len(drafted) < fill.room:
            guess = self._likeliest(sources)
            if guess is None:
                break
            likely *= guess.probability
            if likely < LEAST_PROBABILITY or not self._costs.worth(rows + len(drafted), likely):
                break
            drafted.append(guess)
            for source in sources:
                source.take(guess.token)
        return drafted

    def _sources(self, gap: int, fill: WrittenFill) -> list[Proposes]:
        sources: list[Proposes] = []
        if old := self._layout.old(gap) or tuple(fill.guess):
            aligned = self._aligned.setdefault((gap, old), OldTextDrafts(old))
            aligned.follow(fill.written)
            sources.append(copy(aligned))  # it goes on by itself
        if self._known:
            sources.append(ProjectDrafts(self._known, [*self._layout.segments[gap][-MAX_MATCH:], *fill.written]))
        # A run goes up to its first token that is no text.
        if run := list(takewhile(lambda guess: guess.token not in self._specials, fill.run)):
            sources.append(RunDrafts(run))
        return sources

    def is_sure(self, gap: int, fill: WrittenFill) -> bool:
        """Whether some source is sure of the next token."""
        best = self._likeliest(self._sources(gap, fill))
        return best is not None and best.probability >= SURE

    def with_masks(self, drafted: list[DraftedToken], rows: int, most: int) -> tuple[list[DraftedToken], int]:
        """What to read of a draft in a pass that has ``rows`` rows without it, and how many masks behind it."""
        masks = min(self._masks, most)
        if masks <= 0:
            return drafted, 0
        ahead = Ahead(self._costs, [self._rates.of_masks(slot) for slot in range(1, self._masks + 1)])
        slots, masks = ahead.best(rows, [guess.probability for guess in drafted], masks)
        return drafted[:slots], masks

    def filled(self, fills: Sequence[Sequence[int]]) -> None:
        """Let the project have the ``fills`` of the first gaps, each with the text around it; empty: not filled yet."""
        if not self._project:
            return
        segments = self._layout.segments
        written = {
            str(gap): [*segments[gap][-MAX_MATCH:], *fill, *segments[gap + 1][:MAX_MATCH]]
            for gap, fill in enumerate(fills)
            if fill
        }
        kind = self._project[0].documents.kind
        self._known = [*self._project, *([Segment(IndexedDocuments.index(written, kind))] if written else [])]

    def verified(self, guesses: Sequence[DraftedToken], held: int) -> None:
        """Learn that the first ``held`` of a draft's tokens were right, and the next one, if any, was wrong."""
        for index, guess in enumerate(guesses[: held + 1]):
            self._rates.saw(guess, index < held)

    def _likeliest(self, sources: Sequence[Proposes]) -> DraftedToken | None:
        """The likeliest proposal, if there is any."""
        best: DraftedToken | None = None
        for source in sources:
            if best is not None and best.probability >= SURE:
                break
            if (guess := source.proposal()) is not None:
                probability = self._rates.corrected(guess.probability, guess.source, guess.slot)
                if best is None or probability > best.probability:
                    best = replace(guess, probability=probability)
        return best
