"""A true fill is admitted completely if a model that knows only the next token proposes it token by token."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from lacuna_model.core.constraint import Commit, GapView
from lacuna_model.core.params import Region
from lacuna_model.syntax import Language, SyntaxConstraint
from lacuna_model.syntax.search.search import ATTEMPTS

from .conftest import SmallTokens

Samples = dict[str, tuple[Language, bytes]]
LINES = 3
# By language, the first line of each gap of three lines in which every token of the true fill is admitted.
PLACES = {
    "javascript": (4, 5, 7, 10, 11, 42),
    "typescript": (1, 2, 8, 10, 32),
    "go": (9, 12, 15, 16, 17, 44),
    "rust": (1, 5, 8, 9, 44),
    "java": (2, 6, 8, 12, 13, 31),
    "c": (6, 11, 12, 14, 47),
    "cpp": (4, 5, 7, 8, 23),
}
UNKNOWN = np.log(np.full(4, 0.2, dtype=np.float32))


def offered(taken: Sequence[int], place: int, size: int, token: int, tokens: SmallTokens) -> GapView:
    """A view of a gap's only block in which the model knows the token of one slot and nothing of the others."""
    rng = np.random.default_rng(place)
    ids = rng.integers(1, tokens.vocab_size, (size, len(UNKNOWN)))
    logp = np.tile(UNKNOWN, (size, 1))
    ids[place, 0], logp[place] = token, np.log(np.array([0.97, 0.01, 0.01, 0.01], dtype=np.float32))
    return GapView((), (*taken, *(None,) * (size - len(taken))), ids, logp, budget=0)


def admitted(text: bytes, begin: int, end: int, language: Language, tokens: SmallTokens) -> bytes:
    """The part of the text between two offsets that is admitted, token by token, if a gap is cut there."""
    truth = tokens.encode(text[begin:end].decode())
    constraint = SyntaxConstraint(
        text[:begin] + text[end:], [Region(begin, begin, max_tokens=len(truth) + 12)], language, tokens
    )
    tentative = False
    for place, token in enumerate([*truth, tokens.eog_id]):
        commit, view = Commit(0, place, token), offered(truth[:place], place, len(truth) + 12, token, tokens)
        for _ in range(ATTEMPTS):  # a call that admits nothing is repeated, as in the denoise loop
            let_through = constraint.admit([replace(view, tentative=tentative)], [commit])
            if let_through:
                break
        tentative = let_through == [replace(commit, tentative=True)]
        if let_through != [commit] and not tentative:
            return tokens.decode_bytes(truth[:place])
    assert not tentative
    return text[begin:end]


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, lines in PLACES.items() for line in lines])
def test_a_true_fill_is_admitted_token_by_token(samples: Samples, tokens: SmallTokens, name: str, line: int) -> None:
    language, text = samples[name]
    starts = [match.start() for match in re.finditer(rb"[^\n]+", text)]
    begin = starts[line]
    end = text.index(b"\n", starts[line + LINES - 1])
    assert admitted(text, begin, end, language, tokens) == text[begin:end]
