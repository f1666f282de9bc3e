import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The real command in a process of its own."""
    command = [sys.executable, "-m", "lacuna_server", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate"], "--data FILE"),
        (["evaluate", "--data", "none.jsonl.gz"], "none.jsonl.gz: no such file"),
        (["train", "--minutes", "-1"], "'--minutes'"),
        (["train", "validate"], "'--adapter'"),
        (["train", "--recipe", "none.json"], "none.json: not a recipe"),
        (["train", "corpus", "--packages", "none.toml", "--out", "{out}"], "none.toml"),
        (["bench", "--warm", "0"], "'--warm'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    ended = run(*(argument.format(out=tmp_path) for argument in arguments))
    assert ended.returncode == 2
    assert ended.stderr.startswith("lacuna: ")
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.usefixtures("gguf_path")
def test_training_without_shards_says_how_to_make_them(tmp_path: Path) -> None:
    ended = run("train", "--shards", tmp_path, "--out", tmp_path / "out", "--minutes", "1")
    assert ended.returncode == 2
    assert "lacuna train pack" in ended.stderr


@pytest.mark.usefixtures("gguf_path")
def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    data = Path(__file__).parents[3] / "shared" / "data" / "humaneval_infill_dev.jsonl.gz"
    if not data.is_file():
        data = tmp_path / "none"
    ended = run("evaluate", "--data", data, "--engines", "gpt")
    assert ended.returncode == 2
    assert ended.stderr.startswith("lacuna: ")
