import gzip
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.model import gguf_files, tiny
from tests.model.evaluate.fakes import write_llama_cpp
from tests.model.train.corpora import corpus

from lacuna_model.backends.readers import load_tokenizer
from lacuna_model.evaluate.tasks.dataset import Problem
from lacuna_model.evaluate.tasks.llama import INSTALL
from lacuna_model.train.stored.documents import Document, DocumentWriter


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the real command in a separate process."""
    command = [sys.executable, "-m", "lacuna_server", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate"], "--data FILE"),
        (["evaluate", "--data", "none.jsonl.gz"], "none.jsonl.gz: no such file"),
        (["train", "confidence", "--corpus", "{out}"], "`lacuna train corpus` builds the corpus"),
        (["train", "corpus", "--packages", "none.toml", "--out", "{out}"], "none.toml"),
        (["evaluate", "--edits", "none.jsonl.gz"], "none.jsonl.gz: no such file"),
        (["evaluate", "--held-out", "none"], "none: no held-out files here"),
        (["bench", "typed", "--corpus", "{out}"], "`lacuna train corpus` builds the corpus"),
        (["bench", "--warm", "0"], "'--warm'"),
        (["bench", "readers", "--data", "none.jsonl.gz"], "no evaluation data at none.jsonl.gz"),
    ],
)
def test_bad_input_is_reported_in_one_line_with_exit_code_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    ended = run(*(argument.format(out=tmp_path) for argument in arguments))
    assert ended.returncode == 2
    assert ended.stderr.startswith("lacuna: ")
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["drafter", "masks"])
def test_training_is_on_the_device_that_is_named(tmp_path: Path, command: str) -> None:
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    ended = run("train", command, "--hours", "1", "--out", tmp_path, "--model", gguf, "--device", "gpu")
    assert ended.returncode == 2
    assert ended.stderr.startswith("lacuna: no device is called 'gpu'")
    assert ended.stderr.count("\n") == 1


def test_mask_rows_are_trained_on_what_another_model_says(tmp_path: Path) -> None:
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    texts = corpus(tmp_path / "corpus", python=[tiny.CODE * 2])
    said = ("--model", gguf, "--corpus", texts, "--threads", 1)
    ended = run("train", "targets", *said, "--prompts", 2, "--out", tmp_path / "targets")
    assert ended.returncode == 0, ended.stderr
    assert "targets has 2 prompts of " in ended.stderr
    ended = run("train", "masks", *said, "--hours", 0, "--teacher", tmp_path / "targets", "--out", tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    assert "tokens a pass" in ended.stderr
    assert (tmp_path / "out" / "masks.safetensors").is_file()


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    """A benchmark of one problem."""
    text, test = "def double(x):\n", "def check(candidate):\n    assert candidate(2) == 4\n"
    problem = Problem("SingleLineInfilling/HumanEval/0/1", "double", text, "    return y\n", "    y = 2 * x\n", test)
    path = tmp_path / "problems.jsonl.gz"
    path.write_bytes(gzip.compress(msgspec.json.encode(problem) + b"\n"))
    return path


def test_llama_cpp_fills_the_gap_of_a_benchmark(
    tmp_path: Path, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(write_llama_cpp(tmp_path / "packages")))
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    tokenizer = load_tokenizer(str(gguf))
    said = tokenizer.encode("    y = 2 * x\n    return y\n")
    gguf.with_suffix(".says").write_text(json.dumps([*said, tokenizer.eog_id]))
    ended = run("evaluate", "--data", problems, "--engines", "llama.cpp", "--model", gguf, "--json")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)["engines"]["llama.cpp"]["kinds"]["single"]
    assert (found["n"], found["pass_rate"], found["exact_match"]) == (1, 1.0, 1.0)


def test_an_unknown_engine_is_refused(problems: Path) -> None:
    ended = run("evaluate", "--data", problems, "--engines", "gpt")
    assert ended.returncode == 2
    assert ended.stderr.startswith("lacuna: no engine named 'gpt'; there are lacuna, ")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [["evaluate", "--data", "{data}", "--engines", "llama.cpp"], ["bench"]])
def test_without_llama_cpp_one_line_explains_how_to_install_it(problems: Path, command: list[str]) -> None:
    arguments = [word.format(data=problems) for word in command]
    code = f"""import sys; sys.modules["llama_cpp"] = None
from lacuna_server.cli.main import _run; sys.exit(_run({arguments!r}))"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert ended.stderr == f"lacuna: llama.cpp is not installed; run: {INSTALL}\n"


@pytest.mark.usefixtures("coder_path")
def test_cursors_in_held_out_lines_are_counted_and_timed(tmp_path: Path) -> None:
    text = "".join(f"def f{i}(a):\n    return a + {i}\n\n\n" for i in range(40))
    with DocumentWriter(tmp_path / "python" / "held_out.jsonl.zst") as writer:
        writer.write(Document("package", "1", "MIT", "a.py", "python", text))
    ended = run("bench", "typed", "--corpus", tmp_path, "--cases", "6", "--seed", "2", "--json")
    rows = json.loads(ended.stdout)["typed"]
    assert sum(row["cursors"] for row in rows) == 6
    assert all(row["exact"] <= row["suggested"] <= row["cursors"] for row in rows)
    assert all(0 < row["p50"] <= row["p95"] <= row["slowest"] for row in rows)


@pytest.mark.parametrize(
    ("part", "message"), [("3/2", "is not of the form K/N"), ("0/2", "K/N"), ("half", "K/N"), ("2/2", "has no gap")]
)
def test_a_part_that_cannot_be_is_refused_in_one_line(problems: Path, part: str, message: str) -> None:
    ended = run("bench", "drafts", "--data", problems, "--part", part)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_drafts_are_compared_in_parts(tmp_path: Path, problems: Path) -> None:
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    chosen = ("--part", "1/2", "--arms", "none,project", "--model", gguf, "--threads", 1)
    twice = gzip.decompress(problems.read_bytes()) * 2
    problems.write_bytes(gzip.compress(twice.replace(b"HumanEval/0", b"HumanEval/1", 1)))
    ended = run("bench", "drafts", "--data", problems, *chosen, "--json")
    assert ended.returncode == 0, ended.stderr
    rows = json.loads(ended.stdout)["drafts"]
    assert [(row["arm"], row["fills"], row["differing"]) for row in rows] == [("none", 1, 0), ("project", 1, 0)]
