"""Texts and tokens that mean nothing: every call returns, and what is delivered keeps the rules of its region."""

import numpy as np
import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import fill, noisy
from tests.model.syntax.test_constraint import NAMES, Samples

from lacuna_model.core import work
from lacuna_model.core.constraint import GapView, with_fill
from lacuna_model.core.params import Region
from lacuna_model.syntax.proving.constraint import CALL_SECONDS, SyntaxConstraint
from lacuna_model.syntax.proving.judge import SETTLE_SECONDS

ROOM = 16
MARKS = [
    b"{",
    b"}",
    b"(",
    b")",
    b'"',
    b"'",
    b"\n",
    b"    ",
    b"<",
    b"/*",
    b"*/",
    b"#",
    b"`",
    b"\\",
    b"\x00",
    b"\xff",
    b"end",
]
LONGEST = 4 * (CALL_SECONDS + SETTLE_SECONDS)  # of work: a search that is running ends at its next check of the clock


@pytest.mark.parametrize(("seed", "name"), list(enumerate(NAMES)))
def test_every_call_returns_whatever_the_text_is(samples: Samples, tokens: SmallTokens, seed: int, name: str) -> None:
    language, sample = samples[name]
    rng = np.random.default_rng(seed)
    pieces = [MARKS[rng.integers(len(MARKS))] if rng.random() < 0.4 else rng.bytes(3) for _ in range(30)]
    place = int(rng.integers(len(sample)))
    text = (b"".join(pieces[:15]) + sample[place : place + 200] + b"".join(pieces[15:])).decode(errors="replace")
    cuts = sorted(int(cut) for cut in rng.integers(0, len(text), 2))
    at = [len(text[:cut].encode()) for cut in cuts[: 1 + seed % 2]]
    regions = [Region(one, one, ROOM, single_line=not seed % 2) for one in at]
    began = work.spent()
    constraint = SyntaxConstraint(text.encode(), regions, language, tokens)
    closed = with_fill(GapView((), (), closed=True), rng.integers(1, tokens.vocab_size, 6).tolist())
    constraint.confirms(0, closed)
    constraint.finish([closed] * len(regions), truncate=True)
    constraint = SyntaxConstraint(text.encode(), regions, language, tokens)
    model = noisy([[]] * len(regions), tokens, rng, 1.0)
    verdict = fill(constraint, model, [ROOM] * len(regions), tokens.eog_id)
    for region, found in zip(regions, verdict.fills or (), strict=verdict.fills is not None):
        assert not (region.single_line and "\n" in found)
    assert work.spent() - began < LONGEST * 1e9 * 2 * ROOM
