import gzip
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.__main__ import BENCHMARKS
from tests.benchmarks.tasks.dataset import Problem
from tests.benchmarks.tasks.llama import INSTALL
from tests.benchmarks.tests.fakes import write_llama_cpp
from tests.model import gguf_files

from lacuna_model.backends.readers import load_tokenizer

ROOT = Path(__file__).parents[3]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the real command in a separate process."""
    command = [sys.executable, "-m", "tests.benchmarks", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate"], "--data FILE"),
        (["fit-gate", "--corpus", "{out}"], "`python -m training corpus` builds the corpus"),
        (["next-edits", "none.jsonl.gz"], "none.jsonl.gz has no edits of commits"),
    ],
)
def test_bad_input_is_reported_in_one_line_with_exit_code_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    ended = run(*(argument.format(out=tmp_path) for argument in arguments))
    assert ended.returncode == 2
    assert ended.stderr.startswith("lacuna: ")
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1


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


def test_without_llama_cpp_one_line_explains_how_to_install_it() -> None:
    code = """import sys; sys.modules["llama_cpp"] = None
from tests.benchmarks.__main__ import BENCHMARKS; BENCHMARKS.main(["speed"])"""
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    assert ended.returncode == 2
    assert ended.stderr == f"lacuna: llama.cpp is not installed; run: {INSTALL}\n"


def test_drafts_are_compared_in_parts(tmp_path: Path, problems: Path) -> None:
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    chosen = ("--part", "1/2", "--arms", "none,project", "--model", gguf, "--threads", 1)
    twice = gzip.decompress(problems.read_bytes()) * 2
    problems.write_bytes(gzip.compress(twice.replace(b"HumanEval/0", b"HumanEval/1", 1)))
    ended = run("drafts", "--data", problems, *chosen, "--json")
    assert ended.returncode == 0, ended.stderr
    rows = json.loads(ended.stdout)["drafts"]
    assert [(row["arm"], row["fills"], row["differing"]) for row in rows] == [("none", 1, 0), ("project", 1, 0)]


def test_a_library_that_is_not_installed_is_reported_in_one_line() -> None:
    code = """import sys; sys.modules["rapidfuzz"] = None
from tests.benchmarks.__main__ import BENCHMARKS; BENCHMARKS.main(["evaluate", "--held-out", "none"])"""
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert ended.returncode == 2
    assert ended.stderr == "lacuna: this needs rapidfuzz: pip install -e '.[benchmarks]'\n"


def test_every_command_has_help() -> None:
    for module in dict.fromkeys(BENCHMARKS.commands.values()):
        found = {command.name for command in BENCHMARKS.app(module).registered_commands}
        assert found == {name for name, own in BENCHMARKS.commands.items() if own == module}
    assert "fit-ranking" in run("--help").stdout
