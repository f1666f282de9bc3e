"""Finds the chunks of the workspace that share the most telling words with the cursor's surroundings (BM25)."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna_model.snippets.sources import Chunk

# The index is held in memory: this is about 9 MB of text.
MAX_CHUNKS = 12_000


@contextmanager
def _without_jax() -> Iterator[None]:
    """Let an import of jax fail, unless it is loaded.

    bm25s runs one operation of jax if it can, for a function that is not used here. Jax then takes three quarters of a
    GPU's memory, which the model needs.
    """
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]  # None: cannot be imported
    hidden = "jax" not in modules
    if hidden:
        modules["jax"] = None
    try:
        yield
    finally:
        if hidden:
            del modules["jax"]


@cache
def _bm25s() -> Any:
    """The library, which takes as long to import as half the engine: the first suggestion does without it."""
    with _without_jax():
        import bm25s  # type: ignore[import-untyped]  # has no stubs
    # It sets its own level to DEBUG, and writes into the log of whoever logs at all.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return bm25s


class SimilarCode:
    """An immutable index over chunks; changes need a new one."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = [chunk for chunk in chunks if chunk.words][:MAX_CHUNKS]
        self._index: Any = None
        if self.chunks:
            self._index = _bm25s().BM25(method="lucene")
            self._index.index([chunk.words for chunk in self.chunks], show_progress=False)
            scores = self._index.scores
            # The most that each word can add to a score; divided by their sum, scores are shares of the highest
            # possible score.
            self._most: NDArray[np.float32] = np.maximum.reduceat(scores["data"], scores["indptr"][:-1])

    def nearest(self, query: Sequence[str], count: int) -> list[tuple[Chunk, float]]:
        """The ``count`` chunks most similar to a query of words, best first, each with a score in 0..1."""
        ids = self._index.get_tokens_ids(sorted(set(query))) if self._index is not None else []
        if not ids:
            return []
        scores = self._index.get_scores_from_ids(ids) / self._most[ids].sum()
        best = np.argsort(-scores, kind="stable")[:count]
        return [(self.chunks[i], float(scores[i])) for i in best if scores[i] > 0]
