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
from tests.model import gguf_files, tiny

from lacuna_model.readers import load_tokenizer
from training.stored import Document, DocumentWriter

ROOT = Path(__file__).parents[3]
TINY = ROOT / "tests/data/syntax/ledger.py"
# The part of llama-cpp-python that is used. It generates the tokens of MODEL.says.
LLAMA_CPP = """
import json
from pathlib import Path

class Llama:
    def __init__(self, model_path, **options):
        self.says = Path(model_path).with_suffix(".says")

    def generate(self, tokens, **options):
        yield from json.loads(self.says.read_text())

def llama_print_system_info():
    return b"CPU : AVX2 = 1 | FMA = 1 | "
"""


def run(*arguments: object, code: str = "") -> subprocess.CompletedProcess[str]:
    """Run the real command in a separate process, after some ``code``."""
    code = f"{code}\nfrom tests.benchmarks.__main__ import BENCHMARKS; BENCHMARKS.main({[*map(str, arguments)]})"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)


@pytest.mark.usefixtures("problems")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("evaluate", "--data FILE"),
        ("evaluate --data {out}/bad.gz", "damaged or no gzip file"),
        ("evaluate --data {out}/problems.jsonl.gz --engines gpt", "no engine named 'gpt'"),
        ("fit-gate --records {out}/records --corpus {out}", "`python -m training corpus` builds the corpus"),
        ("next-edits {out}/bad.gz", "bad.gz has no edits of commits"),
        ("speed", f"llama.cpp is not installed; run: {INSTALL}"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: str,
    message: str,
) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    (tmp_path / "bad.gz").write_bytes(b"no problems")
    code = BENCHMARKS.run(arguments.format(out=tmp_path).split())
    is_one_line(code, capfd.readouterr().err, message)


def test_a_missing_package_is_named_in_one_line() -> None:
    ended = run("evaluate", code='import sys; sys.modules["rapidfuzz"] = None')
    is_one_line(ended.returncode, ended.stderr, "this needs rapidfuzz: pip install")


def is_one_line(code: int, said: str, message: str) -> None:
    assert code == 2
    assert said.startswith("lacuna: ")
    assert message in said
    assert said.count("\n") == 1


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    """A benchmark of two problems."""
    text, test = "def double(x):\n", "def check(candidate):\n    assert candidate(2) == 4\n"
    cut = text, "    return y\n", "    y = 2 * x\n", test
    own = [Problem(f"SingleLineInfilling/HumanEval/{number}/1", "double", *cut) for number in range(2)]
    path = tmp_path / "problems.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(msgspec.json.encode(one) + b"\n" for one in own)))
    return path


def test_two_engines_fill_the_gaps_of_a_benchmark(
    tmp_path: Path, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "llama_cpp.py").write_text(LLAMA_CPP)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    tokenizer = load_tokenizer(str(gguf))
    said = tokenizer.encode("    y = 2 * x\n    return y\n")
    gguf.with_suffix(".says").write_text(json.dumps([*said, tokenizer.eog_id]))
    records = tmp_path / "records.jsonl"
    ended = run("evaluate", "--data", problems, "--model", gguf, "--json", "--records", records)
    assert ended.returncode == 0, ended.stderr
    figures = {row["engine"]: row for row in json.loads(ended.stdout)}
    assert [figures["llama.cpp"][name] for name in ("n", "passed", "exact", "refused")] == [2, 2, 2, 0]
    assert len(records.read_bytes().splitlines()) == 1 + 4


def test_gaps_of_a_corpus_are_restored(tmp_path: Path) -> None:
    with DocumentWriter(tmp_path / "python" / "held_out.jsonl.zst") as writer:
        writer.write(Document("p", "1", "MIT", "a.py", "python", 2 * tiny.CODE))
    gguf = gguf_files.write_fim(tmp_path / "tiny.gguf")
    ended = run("evaluate", "--held-out", tmp_path, "--limit", 2, "--engines", "lacuna", "--model", gguf, "--json")
    assert ended.returncode == 0, ended.stderr
    found = [(row["problems"], row["n"], row["similarity"] < 1) for row in json.loads(ended.stdout)]
    assert found == [("line", 1, True), ("lines", 1, True), ("all", 2, True), ("python", 2, True)]


@pytest.mark.parametrize("command", ["syntax --gaps 1,2 --slots 4", "unclean"])
def test_the_constraint_is_measured_in_files(tmp_path: Path, command: str) -> None:
    gguf, records = gguf_files.write_fim(tmp_path / "tiny.gguf"), tmp_path / "records.jsonl"
    ended = run(*command.split(), TINY, "--cases", 5, "--noise", 0, "--model", gguf, "--json", "--records", records)
    assert ended.returncode == 0, ended.stderr
    (row,) = json.loads(ended.stdout)
    assert (row["language"], row["cases"]) == ("python", len(records.read_text().splitlines()))
    assert row["refused"] + row["delivered, parse"] <= row["cases"]


def test_every_command_has_help(capfd: pytest.CaptureFixture[str]) -> None:
    for module in dict.fromkeys(BENCHMARKS.commands.values()):
        found = {command.name for command in BENCHMARKS.app(module).registered_commands}
        assert found == {name for name, own in BENCHMARKS.commands.items() if own == module}
    assert BENCHMARKS.run(["--help"]) == 0
    shown = capfd.readouterr().out
    assert all(name in shown for name in BENCHMARKS.commands)
