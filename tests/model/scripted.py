"""A fake model that writes given texts and a fake constraint with a given rule, for tests of the loop around them."""

from collections.abc import Callable, Sequence

import numpy as np

from lacuna_model.core.constraint import Commit, GapView, Unconstrained, Verdict
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.decode.reader import Drafted
from lacuna_model.tokens.tokenizer import Tokenizer

SECOND = 3  # the second candidate of every slot


def sure(tokens: Sequence[int], entropy: Sequence[float] | None = None, exact: int = 0) -> Marginals:
    """Marginals that give each of ``tokens`` a probability of 0.95."""
    ids = np.array([[token, SECOND] for token in tokens])
    logp = np.log(np.array([[0.95, 0.04]] * len(tokens), dtype=np.float32))
    return Marginals(ids, logp, np.array(entropy or [0.1] * len(tokens), dtype=np.float32), exact)


class Scripted:
    """Proposes one text for each gap, then its end token. Counts its passes."""

    def __init__(self, tokenizer: Tokenizer, *texts: str, entropy: float = 0.1) -> None:
        self.passes = 0
        self.blocks = 0
        self.announced = False
        self.on_pass: Callable[[int], None] = lambda passes: None
        self._entropy = entropy
        self._wanted = [[*tokenizer.encode(text), *[tokenizer.eog_id] * 100] for text in texts]

    def announce(self, canvases: Sequence[Canvas]) -> None:
        self.announced = True

    def withdraw(self) -> None:
        self.announced = False

    def read(self, canvases: Sequence[Canvas]) -> list[Marginals | None]:
        self.passes += 1
        self.on_pass(self.passes)
        return [
            None if canvas.closed else self._marginals(canvas, wanted)
            for canvas, wanted in zip(canvases, self._wanted, strict=True)
        ]

    def _marginals(self, canvas: Canvas, wanted: Sequence[int]) -> Marginals:
        first, size = len(canvas.done), len(canvas.slots)
        return sure(wanted[first : first + size], [self._entropy] * size)

    def drafted(self, canvas: Canvas) -> list[Drafted]:
        """Nothing: no pass verifies a draft."""
        return []

    def finish_block(self, canvases: Sequence[Canvas]) -> None:
        self.blocks += 1


class ReadsAhead(Scripted):
    """Reads up to ``rows`` slots of every gap in a pass, each after those before it."""

    def __init__(self, tokenizer: Tokenizer, *texts: str, rows: int) -> None:
        super().__init__(tokenizer, *texts)
        self._rows = rows

    def _marginals(self, canvas: Canvas, wanted: Sequence[int]) -> Marginals:
        first, frontier = len(canvas.done), canvas.frontier
        rows = min(self._rows, len(canvas.slots) - frontier)
        return sure(wanted[first : first + frontier + rows], exact=rows)


class Strict(Unconstrained):
    """Admits the proposed commits for which ``allow`` is true."""

    active = True

    def __init__(self, tokenizer: Tokenizer, allow: Callable[[Commit], bool]) -> None:
        super().__init__(tokenizer)
        self.asked = 0
        self._allow = allow

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> list[Commit]:
        self.asked += 1
        return [commit for commit in proposal if self._allow(commit)]

    def finish(self, gaps: Sequence[GapView], *, truncate: bool) -> Verdict:
        verdict = super().finish(gaps, truncate=truncate)
        if all(gap.closed for gap in gaps) or truncate:
            return verdict
        return Verdict("no_valid_fill", None, "nothing may stand here")
