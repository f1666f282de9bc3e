"""The training run for a GPU, pretended: the pack survives its pieces, and the whole of it ends with a file to read."""

import json
import subprocess
import sys
from pathlib import Path

from tests.gpu import packed, pieces, pretended, train

from lacuna_model.loading import rows_file

ROOT = Path(__file__).parents[2]


def test_the_run_writes_its_figures_and_mask_rows(tmp_path: Path) -> None:
    there = tmp_path / "there"
    for piece in pieces.cut(packed.to_bytes(pretended.pack()), tmp_path / "pieces", 20_000):
        pieces.place(piece, there)
    words = ["--seconds", "1", "--steps", "4", "--notice", "0", "--device", "cpu", "--batch", "128"]
    code = train.main([*words, "--slots", "4", "--rank", "2", "--out", str(tmp_path), "--place", str(there)])
    assert code == 0
    found = json.loads((tmp_path / "train.json").read_text())
    assert found["end trained"]["steps"] == 4
    assert found["end held_out"][0] == 1.0
    config, _ = rows_file.stored(tmp_path / "masks-end.safetensors", pretended.pack().about.config)
    assert (config.slots, config.rank) == (4, 2)


def test_the_run_needs_no_package_that_reads_models_or_the_corpus() -> None:
    missing = ("gguf", "zstandard", "tree_sitter", "datasketch", "bm25s", "llguidance", "pydivsufsort", "rapidfuzz")
    code = f"import sys; sys.modules.update(dict.fromkeys({missing})); import tests.gpu.train"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr
