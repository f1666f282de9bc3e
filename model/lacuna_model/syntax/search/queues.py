"""The candidates of a gap: its draft with all proposed tokens, with the best one, and with committed tokens only."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from lacuna_model.core.constraint import GapView
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.region.draft import Fill, fixed_in_block, holds, lay_out, overlaid, ranked_tokens
from lacuna_model.syntax.region.gap_text import GapText
from lacuna_model.syntax.search.candidates import Candidates
from lacuna_model.syntax.text.minimal_completions import Closer
from lacuna_model.syntax.text.vocabulary import Vocabulary

COST_OVERLAID = 0.3
COST_BEST_ONLY = 1.0
COST_COMMITTED_ONLY = 1.5
COST_ORIGINAL = 2.5
COST_ALTERNATIVE = 0.4
COST_ALTERNATIVE_RANK = 0.2
ALTERNATIVES = 3


class Queues:
    """Makes the candidates of each gap of a document, step after step."""

    def __init__(
        self, vocabulary: Vocabulary, document: Document | None, gaps: Sequence[GapText], original: Sequence[bytes]
    ) -> None:
        self._vocabulary = vocabulary
        self._document = document
        self._gaps = gaps
        self._original = original

    def bare(self, view: GapView, gap: int, closer: Callable[[], Closer] | None = None) -> Candidates:
        """Return completions of the committed tokens, without the model's draft; ``closer`` may make others."""
        queue = Candidates(view, self._gaps[gap] if closer is None else self._gaps[gap].closed_by(closer))
        queue.add_bare(lay_out(view, {}, self._vocabulary.eog_id))
        return queue

    def drafts(self, view: GapView, gap: int, own: Mapping[int, int], fill: Fill | None) -> Candidates:
        """Return a gap's candidates, given its proposed tokens by slot (the best comes last) and the fill it has now.

        If that fill holds all committed tokens, no candidate without proposed tokens is added: it would be no better.
        """
        queue = Candidates(view, self._gaps[gap], fill)
        best = dict(list(own.items())[-1:])
        self._add_draft(queue, view, gap, own, fill, base=0.0)
        for base, overlay in ((COST_BEST_ONLY, best), (COST_COMMITTED_ONLY, {})):
            if overlay != own and (overlay or fill is None or not holds(fill.tokens, view, self._vocabulary.eog_id)):
                queue.add_later(partial(self._add_draft, queue, view, gap, overlay, fill, base=base), base=base)
        if fill is not None:
            queue.add_later(partial(self._add_alternatives, queue, view, gap, fill), base=COST_ALTERNATIVE)
        return queue

    def _add_draft(
        self,
        queue: Candidates,
        view: GapView,
        gap: int,
        overlay: Mapping[int, int],
        fill: Fill | None,
        *,
        base: float,
    ) -> None:
        """Queue the draft of a gap with some proposed tokens, and its fill with them in their places."""
        eog = self._vocabulary.eog_id
        draft = lay_out(view, overlay, eog)
        if draft is None:
            return
        queue.add(draft, base=base)
        if fill is not None and not draft.closed and not fill.closing:
            fixed = {**fixed_in_block(view, eog), **overlay}  # the fill need not hold them yet
            queue.add_fill(overlaid(fill.tokens, view, fixed, eog), base=base + COST_OVERLAID)
        if draft.kept == 0 and self._original[gap]:
            original = self._gaps[gap].prefix + self._original[gap]
            queue.add_fill(self._vocabulary.encode(original), base=base + COST_ORIGINAL)

    def _add_alternatives(self, queue: Candidates, view: GapView, gap: int, fill: Fill) -> None:
        """Queue the model's next best tokens for the first open slot, if the parser could read them there."""
        eog, done = self._vocabulary.eog_id, len(view.done)
        slot = next((slot for slot, token in enumerate(view.slots) if token is None), None)
        if slot is None or done + slot > len(fill.tokens) or self._document is None:
            return
        frontier = self._document.frontier(gap, len(self._gaps[gap].written(fill.tokens[: done + slot])))
        if frontier is None:
            return
        ranked = (token for token, _ in ranked_tokens(view, slot) if token != eog)
        fitting = (token for token in ranked if frontier.fits(self._vocabulary.piece(token)))
        self._add_next(queue, view, fill, islice(fitting, ALTERNATIVES), slot, base=COST_ALTERNATIVE)

    def _add_next(
        self, queue: Candidates, view: GapView, fill: Fill, tokens: Iterator[int], slot: int, *, base: float
    ) -> None:
        """Queue the draft with the next of some tokens in a slot, and later those with the tokens after it."""
        token = next(tokens, None)
        if token is None:
            return
        draft = lay_out(view, {slot: token}, self._vocabulary.eog_id)
        if draft is not None:
            queue.add_fixed(draft, base=base)
        base += COST_ALTERNATIVE_RANK
        queue.add_later(partial(self._add_next, queue, view, fill, tokens, slot, base=base), base=base)
