import os
import subprocess
import sys
from pathlib import Path

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


def test_the_library_does_not_load_jax(tmp_path: Path) -> None:
    """Jax takes three quarters of a GPU's memory when its first operation runs."""
    (tmp_path / "jax.py").write_text("raise SystemExit('jax is loaded')")
    code = "import lacuna_model.snippets.similar, sys; assert 'jax' not in sys.modules"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, capture_output=True)
    assert done.returncode == 0, done.stderr
