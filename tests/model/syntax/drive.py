"""Drives a constraint as the denoise loop does, with a model that is a function of gap and position."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.constraint import Constraint, Run, Taken, TokenText, Verdict
from lacuna_model.core.context import Gap
from lacuna_model.core.params import Region
from lacuna_model.core.work import Clock
from lacuna_model.decode.fill import Fill, FillStatus
from lacuna_model.syntax import Language, SyntaxConstraint, language_for
from lacuna_model.syntax.judge import Judge

Marginal = tuple[NDArray[np.int64], NDArray[np.float32]]
Model = Callable[[int, int], Marginal]
# Called after each answer with the constraint, the fills and the answer.
Watch = Callable[[Constraint, Sequence[Fill], Taken], None]
# Tokens of a run, at most.
MAX_ROWS = 2


def require(name: str) -> Language:
    """The language of this name."""
    language = language_for(name=name)
    assert language is not None
    return language


def first_fill(before: str, after: str, language: Language) -> str | None:
    """The shortest fill that is found for a gap between two texts; None for none."""
    left, right = before.encode(), after.encode()
    gap = len(left), len(left)
    found = Judge(left + right, gap, language, Clock(), in_line=False, strict=True).stand_in()
    return None if found is None else found.decode()


def certain(truths: Sequence[Sequence[int]], eog_id: int) -> Model:
    """A model that knows the fill."""

    def model(gap: int, position: int) -> Marginal:
        token = truths[gap][position] if position < len(truths[gap]) else eog_id
        return np.array([token, token]), np.array([-0.01, -9.0], dtype=np.float32)

    return model


def noisy(truths: Sequence[Sequence[int]], tokens: TokenText, rng: np.random.Generator, noise: float) -> Model:
    """A model whose best token is wrong with probability ``noise``; with 1 it knows nothing."""

    def model(gap: int, position: int) -> Marginal:
        ids = rng.integers(1, tokens.vocab_size, 6)
        token = truths[gap][position] if position < len(truths[gap]) else tokens.eog_id
        if noise < 1:
            ids[rng.integers(1, 6) if rng.random() < noise else 0] = token
        logp = np.log(np.array([0.6, 0.2, 0.1, 0.05, 0.03, 0.02])).astype(np.float32)
        return ids, logp

    return model


def fill(
    constraint: Constraint,
    model: Model,
    budgets: Sequence[int],
    eog_id: int,
    *,
    rng: np.random.Generator | None = None,
    watch: Watch | None = None,
    max_steps: int = 400,
    prefixes: Sequence[bytes] = (),
) -> Verdict:
    """Fills gaps side by side, two tokens of each at once; with ``rng`` one gap at a time, drawn at random."""
    pairs = zip(budgets, prefixes or [b""] * len(budgets), strict=True)
    fills = [Fill(Gap(index, prefix), budget) for index, (budget, prefix) in enumerate(pairs)]
    for _ in range(max_steps):
        opened = [one for one in fills if one.is_open]
        if not opened:
            break
        for one in opened if rng is None else [opened[rng.integers(len(opened))]]:
            gap, first = one.gap.index, len(one.tokens)
            run = _run(model, gap, first, min(MAX_ROWS, one.most - first), eog_id)
            taken = constraint.take(gap, [each.written() for each in fills], run)
            one.apply(taken, run, eog_id)
            if taken.stuck:
                one.status = FillStatus.STUCK
            elif one.is_open and len(one.tokens) >= one.most:
                one.status = FillStatus.OUT_OF_BUDGET
            if watch is not None:
                watch(constraint, fills, taken)
    return constraint.verdict([one.written() for one in fills], late=any(one.is_open for one in fills))


def delivered(
    name: str, before: str, after: str, model: Model, tokens: TokenText, *, room: int = 64, **rules: Any
) -> str | None:
    """What is delivered for a gap between two texts of a language; None for no valid fill."""
    start = len(before.encode())
    region = Region(start, start, room, **rules)
    constraint = SyntaxConstraint((before + after).encode(), [region], require(name), tokens)
    verdict = fill(constraint, model, [room], tokens.eog_id)
    return verdict.fills[0] if verdict.fills is not None else None


def writes(text: str, tokens: TokenText) -> Model:
    """A model that is certain of a text."""
    return certain([tokens.encode(text)], tokens.eog_id)


def _run(model: Model, gap: int, first: int, count: int, eog_id: int) -> Run:
    """The next tokens of a gap by a model, up to its end."""
    rows = [model(gap, first + place) for place in range(count)]
    ends = [place for place, (ids, _) in enumerate(rows) if ids[0] == eog_id]
    kept = rows[: ends[0] + 1] if ends else rows
    return Run(
        np.array([ids for ids, _ in kept], dtype=np.int64), np.array([logp for _, logp in kept], dtype=np.float32)
    )
