"""``evaluate --data humaneval_cpp.jsonl.gz --gaps N``: fills N random spans of a C++ solution together.

The problems are those of HumanEval-X (arXiv 2303.17568, github.com/THUDM/CodeGeeX, Apache-2.0). Spans are cut out at
random, as papers on constrained decoding of diffusion models do (arXiv 2508.10111).
"""

import secrets
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec
from tests.benchmarks.tasks import sandbox
from tests.benchmarks.tasks.dataset import DatasetError, json_lines
from tests.benchmarks.tasks.fills import Question, Scores

from lacuna_model.core.params import InfillRequest, Region
from training.files import parser_of

# Well above the longest span; engines get no other information about it.
MAX_TOKENS = 192
COMPILER = ("g++", "-std=c++17", "-w", "-O0")
COMPILING_S = 60


class Solution(msgspec.Struct, frozen=True):
    """A function, of which ``prompt`` is the head, and a program that tests it."""

    task_id: str
    prompt: str
    canonical_solution: str
    test: str

    def scores(self, text: str, fills: Sequence[str]) -> Scores:
        """Whether a filled text parses, compiles, and passes its tests."""
        compiles, passed = run(f"{text}\n{self.test}")
        sound = not parser_of("cpp").parse(text.encode()).root_node.has_error
        return Scores({"passed": int(passed), "compile": int(compiles), "parse": int(sound)})


def load(path: Path) -> list[Solution]:
    """The solutions of a file; raises DatasetError where it has other problems."""
    try:
        return msgspec.json.Decoder(Solution).decode_lines(json_lines(path))
    except msgspec.DecodeError as error:
        raise DatasetError(f"{path}: no problems of HumanEval-X ({error})") from error


def is_cpp(path: Path) -> bool:
    """Whether a file has problems of HumanEval-X in C++."""
    return json_lines(path).startswith(b'{"task_id": "CPP/')


def cut(solution: Solution, gaps: int, seed: int) -> Question:
    """The solution without so many spans of random places and lengths, with text between them."""
    rng = Random(f"{seed} {gaps} {solution.task_id}")
    body = solution.canonical_solution
    ends = sorted(rng.sample(range(len(body) + 1), 2 * gaps))
    text, regions, done = solution.prompt, list[Region](), 0
    for start, end in zip(ends[::2], ends[1::2], strict=True):
        text += body[done:start]
        at = len(text.encode())
        regions.append(Region(at, at, max_tokens=MAX_TOKENS))
        done = end
    request = InfillRequest(text + body[done:], tuple(regions), path="solution.cpp", language="cpp")
    return Question(solution.task_id, f"{gaps} spans", request, solution.scores)


def run(program: str, wall_s: float = sandbox.WALL_S) -> tuple[bool, bool]:
    """Whether a program compiles, and whether its last function ends well within its limits, without network."""
    token = secrets.token_hex(16)  # so that an early exit counts as a failure
    head, brace, tail = program.rpartition("}")
    with tempfile.TemporaryDirectory(prefix="lacuna-cpp-") as folder:
        source, made = Path(folder) / "solution.cpp", Path(folder) / "solution"
        source.write_text(f'#include <cstdio>\n{head}std::puts("{token}");{brace}{tail}')
        try:  # what a model writes may take a compiler for ever
            compiling = [*COMPILER, str(source), "-o", str(made)]
            if subprocess.run(compiling, capture_output=True, timeout=COMPILING_S).returncode:
                return False, False
        except subprocess.TimeoutExpired:
            return False, False
        return True, sandbox.run_binary(made, token, wall_s).verdict == "passed"
