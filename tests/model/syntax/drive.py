"""Drives a constraint as the denoise loop does, with a model that is a function of gap and position."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from tree_sitter import Node

from lacuna_model.core.constraint import Commit, Constraint, ConstraintStats, GapView, Remask, TokenText, Verdict
from lacuna_model.core.context import Gap
from lacuna_model.core.work import Clock
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.syntax import Language, language_for
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.proving.judge import Judge
from lacuna_model.syntax.text.minimal_completions import Closer

Marginal = tuple[NDArray[np.int64], NDArray[np.float32]]
Model = Callable[[int, int], Marginal]
# Called after each step with the constraint, the canvases and the admitted commits.
Watch = Callable[[Constraint, Sequence[Canvas], Sequence[Commit | Remask]], None]


def require(name: str) -> Language:
    """The language of this name."""
    language = language_for(name=name)
    assert language is not None
    return language


def between(before: str, after: str, language: Language) -> tuple[Document, Closer]:
    """The document of a gap between two texts, and the source of its completions."""
    left, right = before.encode(), after.encode()
    document = Document(left + right, [(len(left), len(left))], language)
    return document, Closer(document.sides(0))


def first_fill(before: str, after: str, language: Language) -> str | None:
    """The shortest fill that is found for a gap between two texts; None for none."""
    left, right = before.encode(), after.encode()
    gap = len(left), len(left)
    found = Judge(left + right, gap, language, Clock(), ConstraintStats(), in_line=False, strict=True).stand_in()
    return None if found is None else found.decode()


def leaves(node: Node, begin: int) -> Iterator[Node]:
    """Yield the leaves of a tree that begin at or after ``begin``, without comments and missing nodes."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.end_byte <= begin or (node.is_extra and not node.is_error):
            continue
        if node.child_count:
            waiting += reversed(node.children)
        elif begin <= node.start_byte < node.end_byte:
            yield node


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
    watch: Watch | None = None,
    max_steps: int = 400,
    prefixes: Sequence[bytes] = (),
) -> Verdict:
    """Fills gaps; with ``rng`` slots are committed in random order, else left to right."""
    gaps = [Gap(0, prefix) for prefix in prefixes or [b""] * len(budgets)]
    canvases = [Canvas(gap, budget, budget) for gap, budget in zip(gaps, budgets, strict=True)]
    for canvas in canvases:
        canvas.open_block()
    refused = 0
    for _ in range(max_steps):
        if all(canvas.closed for canvas in canvases) or refused > 8:
            break
        seen = [_view(model, gap, canvas) for gap, canvas in enumerate(canvases)]
        admitted = constraint.admit(seen, _propose(seen, rng))
        for one in admitted:
            _apply(canvases[one.gap], one, eog_id)
        if watch is not None:
            watch(constraint, canvases, admitted)
        refused = 0 if admitted else refused + 1
        for canvas in canvases:
            if canvas.is_full and not canvas.closed:
                canvas.open_block()
    views = [_view(model, gap, canvas) for gap, canvas in enumerate(canvases)]
    return constraint.finish(views, truncate=not all(canvas.closed for canvas in canvases))


def _apply(canvas: Canvas, one: Commit | Remask, eog_id: int) -> None:
    if isinstance(one, Remask):
        canvas.remask(one.slot)
    elif one.slot < len(canvas.slots) and not canvas.closed:
        canvas.commit(one.slot, one.token, eog_id)


def _view(model: Model, gap: int, canvas: Canvas) -> GapView:
    if not canvas.slots:
        return canvas.view(None)
    pairs = [model(gap, len(canvas.done) + i) for i in range(len(canvas.slots))]
    ids = np.array([ids for ids, _ in pairs], dtype=np.int64)
    logp = np.array([logp for _, logp in pairs], dtype=np.float32)
    return canvas.view(Marginals(ids, logp, np.zeros(len(pairs), dtype=np.float32)))


def _propose(views: Sequence[GapView], rng: np.random.Generator | None) -> list[Commit]:
    proposal = []
    for gap, view in enumerate(views):
        opened = [slot for slot, token in enumerate(view.slots) if token is None]
        if view.closed or not opened:
            continue
        chosen = opened[:2] if rng is None else rng.permutation(opened)[:2].tolist()
        proposal += [Commit(gap, slot, int(view.ids[slot, 0])) for slot in chosen]
    return proposal
