"""Fills beside syntax that is newer than the grammar: what the grammar cannot read is left out of what it checks."""

import numpy as np
import pytest
from tests.model.syntax.cases import Case, load
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import require

from lacuna_model.core.constraint import Commit
from lacuna_model.core.context import Gap
from lacuna_model.core.params import Region
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.syntax import SyntaxConstraint

FEW = 64


def written(tokens: SmallTokens, case: Case, wanted: str) -> str | None:
    """The fill of a model that knows only its next token, as a model that writes from left to right does."""
    in_line = "\n" not in wanted
    region = Region(case.place, case.place, max_tokens=FEW, max_lines=1 if in_line else None, single_line=in_line)
    constraint, canvas = SyntaxConstraint(case.text, [region], require(case.language), tokens), Canvas(Gap(0), 16, FEW)
    ids = [*tokens.encode(wanted), tokens.eog_id]
    for _ in range(3 * FEW):
        if canvas.closed:
            break
        if canvas.is_full or not canvas.slots:
            canvas.open_block()
        frontier = canvas.slots.index(None)
        so_far = [*canvas.done, *canvas.slots[:frontier]]
        token = ids[len(so_far)] if so_far == ids[: len(so_far)] and len(so_far) < len(ids) else tokens.eog_id
        rows = frontier + 1
        logp = np.full((rows, 1), -0.05, dtype=np.float32)
        view = canvas.view(Marginals(np.full((rows, 1), token), logp, np.zeros(rows, dtype=np.float32), 1))
        for one in constraint.admit([view], [Commit(0, frontier, token)]):
            if isinstance(one, Commit):
                canvas.commit(one.slot, one.token, tokens.eog_id)
            else:
                canvas.remask(one.slot)
    verdict = constraint.finish([canvas.view(None)], truncate=not canvas.closed)
    return verdict.fills[0] if verdict.fills is not None else None


# Each of these files has a statement, a branch or a header that the grammar cannot read; the compilers can.
NEWER = load("newer_syntax")


@pytest.mark.parametrize("case", NEWER)
def test_a_fill_beside_newer_syntax_is_what_the_model_writes(tokens: SmallTokens, case: Case) -> None:
    (wanted,) = case.takes
    assert written(tokens, case, wanted) == wanted
