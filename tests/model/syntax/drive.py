"""Drives a constraint as the denoise loop does, with a model that is a function of gap and position."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lacuna_model.constraint import Commit, Constraint, GapView, TokenText, Verdict
from lacuna_model.syntax import Language, language_for
from lacuna_model.syntax.closing import Closer
from lacuna_model.syntax.document import Document

Marginal = tuple[NDArray[np.int64], NDArray[np.float32]]
Model = Callable[[int, int], Marginal]
Watch = Callable[[Constraint, Sequence[GapView], Sequence[Commit]], None]


def require(name: str) -> Language:
    """The language of this name."""
    language = language_for(name=name)
    assert language is not None
    return language


def between(before: str, after: str, language: Language) -> tuple[Document, Closer]:
    """The document of a gap between two texts, and its completions."""
    left, right = before.encode(), after.encode()
    document = Document(left + right, [(len(left), len(left))], language)
    balance, index = document.balance(0)
    return document, Closer(balance.sides(index))


def certain(truths: Sequence[Sequence[int]], eog_id: int) -> Model:
    """A model that knows the fill."""

    def model(gap: int, position: int) -> Marginal:
        token = truths[gap][position] if position < len(truths[gap]) else eog_id
        return np.array([token]), np.array([-0.01], dtype=np.float32)

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
    block: int = 16,
    watch: Watch | None = None,
    max_steps: int = 400,
    prefixes: Sequence[bytes] = (),
) -> Verdict:
    """Fills gaps block by block; with ``rng`` slots are committed in random order, else left to right."""
    done: list[list[int]] = [[] for _ in budgets]
    slots: list[list[int | None]] = [[None] * min(block, budget) for budget in budgets]
    closed = [False] * len(budgets)

    def views() -> list[GapView]:
        return [_view(model, g, done[g], slots[g], budgets[g], closed[g], prefixes) for g in range(len(budgets))]

    refused = 0
    for _ in range(max_steps):
        if all(closed) or refused > 8:
            break
        seen = views()
        admitted = constraint.admit(seen, _propose(seen, rng))
        if watch is not None:
            watch(constraint, seen, admitted)
        refused = 0 if admitted else refused + 1
        for commit in admitted:
            slots[commit.gap][commit.slot] = commit.token
        for g, budget in enumerate(budgets):
            closed[g] = closed[g] or _advance(done[g], slots[g], budget, block, eog_id)
    return constraint.finish(views(), truncate=not all(closed))


def _view(
    model: Model,
    gap: int,
    done: list[int],
    slots: list[int | None],
    budget: int,
    closed: bool,
    prefixes: Sequence[bytes],
) -> GapView:
    pairs = [model(gap, len(done) + i) for i in range(len(slots))]
    ids = np.array([ids for ids, _ in pairs], dtype=np.int64).reshape(len(pairs), -1)
    logp = np.array([logp for _, logp in pairs], dtype=np.float32).reshape(len(pairs), -1)
    prefix = prefixes[gap] if prefixes else b""
    return GapView(tuple(done), tuple(slots), ids, logp, budget - len(done) - len(slots), closed, prefix)


def _propose(views: Sequence[GapView], rng: np.random.Generator | None) -> list[Commit]:
    proposal = []
    for gap, view in enumerate(views):
        opened = [slot for slot, token in enumerate(view.slots) if token is None]
        if view.closed or not opened:
            continue
        chosen = opened[:2] if rng is None else rng.permutation(opened)[:2].tolist()
        proposal += [Commit(gap, slot, int(view.ids[slot, 0])) for slot in chosen]
    return proposal


def _advance(done: list[int], slots: list[int | None], budget: int, block: int, eog_id: int) -> bool:
    """Opens the next block where this one is full; whether the gap is closed."""
    for token in slots:
        if token is None:
            return False
        if token == eog_id:
            return True
    left = budget - len(done) - len(slots)
    if left <= 0:
        return True
    done += [token for token in slots if token is not None]
    slots[:] = [None] * min(block, left)
    return False
