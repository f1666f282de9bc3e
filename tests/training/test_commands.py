import subprocess
import sys
from pathlib import Path

from tests.model import gguf_files, tiny
from tests.training.corpora import corpus


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the real command in a separate process."""
    command = [sys.executable, "-m", "training", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_list_of_packages_that_is_missing_is_named(tmp_path: Path) -> None:
    ended = run("corpus", "--packages", "none.toml", "--out", tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("lacuna: ")
    assert "none.toml" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_mask_rows_are_trained_on_what_another_model_says(tmp_path: Path) -> None:
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    texts = corpus(tmp_path / "corpus", python=[tiny.CODE * 2])
    said = ("--model", gguf, "--corpus", texts, "--threads", 1)
    ended = run("targets", *said, "--prompts", 2, "--out", tmp_path / "targets")
    assert ended.returncode == 0, ended.stderr
    assert "targets has 2 prompts of " in ended.stderr
    ended = run("masks", *said, "--hours", 0, "--teacher", tmp_path / "targets", "--out", tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    assert "tokens a pass" in ended.stderr
    assert (tmp_path / "out" / "masks.safetensors").is_file()
