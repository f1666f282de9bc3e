"""The training run for a GPU, pretended: the pack survives its pieces, and the whole of it ends with a file to read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.gpu import packed, pieces, pretended, train

from lacuna_model.loading import rows_file

ROOT = Path(__file__).parents[3]


@pytest.fixture
def there(tmp_path: Path) -> Path:
    for piece in pieces.cut(packed.to_bytes(pretended.pack()), tmp_path / "pieces", 20_000):
        pieces.place(piece, tmp_path / "there")
    return tmp_path / "there"


def test_a_pack_survives_its_pieces(there: Path) -> None:
    begun, found = pretended.pack(), packed.from_bytes(pieces.joined(there))
    assert max(one.max() for one in begun.texts) > 1 << 15
    assert found.about == begun.about
    assert [one.tolist() for one in found.texts] == [one.tolist() for one in begun.texts]
    assert found.prompts.keys() == begun.prompts.keys()
    for name, samples in begun.prompts.items():
        for one, other in zip(samples, found.prompts[name], strict=True):
            assert list(one.ids) == other.ids.tolist()
            assert (one.greedy is None) == (other.greedy is None)
    base, other = (one.base(torch.device("cpu"), torch.float32) for one in (begun, found))
    assert torch.allclose(base.head, other.head, rtol=2e-3)


def test_a_piece_that_is_missing_or_damaged_is_named(there: Path) -> None:
    first = sorted(there.glob("*.piece"))[0]
    content = first.read_bytes()
    first.write_bytes(content[:-1] + b"x")
    with pytest.raises(pieces.PiecesError, match="is damaged"):
        pieces.joined(there)
    first.unlink()
    with pytest.raises(pieces.PiecesError, match="has 3 pieces of 4"):
        pieces.joined(there)


def test_the_run_writes_its_figures_and_mask_rows(there: Path, tmp_path: Path) -> None:
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
