"""The candidates of a gap: its draft with all proposed tokens, with the best one, and with committed tokens only."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lacuna_model.core.constraint import GapView
from lacuna_model.syntax.region.draft import Fill, fixed_in_block, holds, lay_out, overlaid
from lacuna_model.syntax.region.gap_text import GapText
from lacuna_model.syntax.search.candidates import Candidates
from lacuna_model.syntax.text.minimal_completions import Closer
from lacuna_model.syntax.text.vocabulary import Vocabulary

COST_OVERLAID = 0.3
COST_BEST_ONLY = 1.0
COST_COMMITTED_ONLY = 1.5
COST_ORIGINAL = 2.5


class Queues:
    """Makes the candidates of each gap of a document, step after step."""

    def __init__(self, vocabulary: Vocabulary, gaps: Sequence[GapText], original: Sequence[bytes]) -> None:
        self._vocabulary = vocabulary
        self._gaps = gaps
        self._original = original

    def bare(self, view: GapView, gap: int, closer: Callable[[], Closer] | None = None) -> Candidates:
        """Return completions of the committed tokens, without the model's draft; ``closer`` may make others."""
        queue = Candidates(self._gaps[gap] if closer is None else self._gaps[gap].closed_by(closer))
        queue.add_bare(lay_out(view, {}, self._vocabulary.eog_id))
        return queue

    def drafts(self, view: GapView, gap: int, own: Mapping[int, int], fill: Fill | None) -> Candidates:
        """Return a gap's candidates, given its proposed tokens by slot (the best comes last) and the fill it has now.

        If that fill holds all committed tokens, no candidate without proposed tokens is added: it would be no better.
        """
        queue = Candidates(self._gaps[gap], fill)
        best = dict(list(own.items())[-1:])
        self._add_draft(queue, view, gap, own, fill, base=0.0)
        for base, overlay in ((COST_BEST_ONLY, best), (COST_COMMITTED_ONLY, {})):
            if overlay != own and (overlay or fill is None or not holds(fill.tokens, view, self._vocabulary.eog_id)):
                queue.add_later(partial(self._add_draft, queue, view, gap, overlay, fill, base=base), base=base)
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
