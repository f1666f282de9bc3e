"""Drafts for a gap from the open file and its workspace, which the model verifies in its next pass."""

from collections.abc import Sequence

from lacuna_model.core.context import Layout
from lacuna_model.prior.index import Segment
from lacuna_model.prior.proposal import Walk
from lacuna_model.prior.suffix_array import MAX_MATCH

# A draft ends where its certainty, a product over its tokens, falls below ``LEAST_CERTAINTY``. Shorter matches are
# ignored.
LEAST_MATCH = 3
LEAST_CERTAINTY = 0.35


class ProjectDrafts:
    """Continues a fill as the longest match in the project continues."""

    def __init__(self, known: Sequence[Segment], layout: Layout) -> None:
        self._known = known
        self._layout = layout

    def draft(self, gap: int, written: Sequence[int], most: int) -> list[int]:
        """Up to ``most`` tokens that may follow the tokens ``written`` in a gap."""
        walk = Walk(self._known, [*self._layout.segments[gap], *written][-MAX_MATCH:])
        drafted: list[int] = []
        certainty = 1.0
        while len(drafted) < most:
            proposal = walk.proposal()
            if proposal is None or proposal.length < LEAST_MATCH:
                break
            token = int(proposal.ids[0])
            certainty *= proposal.purity * proposal.length / (proposal.length + 2)
            if token < 0 or certainty < LEAST_CERTAINTY:
                break
            drafted.append(token)
            walk.take(token)
        return drafted
