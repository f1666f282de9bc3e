import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.snippets.similar import SimilarCode
from lacuna_model.snippets.sources import Chunk
from lacuna_model.snippets.words import words

WORDS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon"]), max_size=8)


def index(*texts: str) -> SimilarCode:
    return SimilarCode([Chunk(f"{i}.py", [text], 0, 1, words(text)) for i, text in enumerate(texts)])


def test_the_chunk_with_the_rarest_shared_words_is_nearest() -> None:
    similar = index("self return value", "open_account(self, owner) return", "self return other")
    best, *others = similar.nearest(words("return open_account(owner)"), 3)
    assert best[0].path == "1.py"
    assert best[1] > 0.8
    assert all(score < 0.2 for _, score in others)


def test_without_shared_words_nothing_is_similar() -> None:
    assert index().nearest(["alpha"], 3) == []
    assert index("alpha").nearest([], 3) == []
    assert index("alpha", "...").nearest(["beta"], 3) == []


@given(st.lists(WORDS, max_size=6), WORDS, st.integers(1, 6))
def test_scores_are_shares_and_in_order(chunks: list[list[str]], query: list[str], count: int) -> None:
    found = index(*map(" ".join, chunks)).nearest(query, count)
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert len(found) <= count
    assert all(0 < score <= 1.0001 for score in scores)
    assert all(set(chunk.words) & set(query) for chunk, _ in found)


def test_the_library_writes_nothing_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    index("self return value", "open_account(self, owner) return").nearest(words("return"), 1)
    assert [record for record in caplog.records if record.name.startswith("bm25s")] == []


def test_the_library_does_not_load_jax(tmp_path: Path) -> None:
    """Jax takes three quarters of a GPU's memory when its first operation runs."""
    (tmp_path / "jax.py").write_text("raise SystemExit('jax is loaded')")
    code = "import lacuna_model.snippets.similar, sys; assert 'jax' not in sys.modules"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, capture_output=True)
    assert done.returncode == 0, done.stderr
