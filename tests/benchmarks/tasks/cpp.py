"""``evaluate --data humaneval_cpp.jsonl.gz --gaps N``: fills N random spans of a C++ solution together.

The problems are those of HumanEval-X (arXiv 2303.17568, github.com/THUDM/CodeGeeX, Apache-2.0). Spans are cut out at
random, as papers on constrained decoding of diffusion models do (arXiv 2508.10111).
"""

import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec
from tests.benchmarks.figures import Row, rated, times
from tests.benchmarks.records import Records
from tests.benchmarks.tasks import sandbox
from tests.benchmarks.tasks.dataset import DatasetError, json_lines
from tests.benchmarks.tasks.engines import Filler

from lacuna_model.core.params import InfillRequest, Region
from training.files import parser_of

# Well above the longest span; engines get no other information about it.
MAX_TOKENS = 192
COMPILER = ("g++", "-std=c++17", "-w", "-O0")
COMPILING_S, RUNNING_S = 60, 10


class Solution(msgspec.Struct, frozen=True):
    """A function, of which ``prompt`` is the head, and a program that tests it."""

    task_id: str
    prompt: str
    canonical_solution: str
    test: str


class Outcome(msgspec.Struct, frozen=True):
    """What an engine made of one solution: whether it parses, compiles, and passes its tests."""

    engine: str
    task_id: str
    fills: Sequence[str]
    parses: bool
    compiles: bool
    passed: bool
    refused: bool
    tokens: int
    nfe: int
    ms: float


def load(path: Path) -> list[Solution]:
    """The solutions of a file; raises DatasetError where it has none, or other problems."""
    try:
        found = msgspec.json.Decoder(Solution).decode_lines(json_lines(path))
    except msgspec.DecodeError as error:
        raise DatasetError(f"{path}: no problems of HumanEval-X ({error})") from error
    return found


def is_cpp(path: Path) -> bool:
    """Whether a file has problems of HumanEval-X in C++."""
    return json_lines(path).startswith(b'{"task_id": "CPP/')


def cut(solution: Solution, gaps: int, seed: int) -> InfillRequest:
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
    return InfillRequest(text + body[done:], tuple(regions), path="solution.cpp", language="cpp")


def measure(
    solutions: Sequence[Solution], gaps: int, seed: int, fillers: Sequence[Filler], records: Records[Outcome]
) -> list[Outcome]:
    """The results of filling every solution with every engine, in turn."""
    questions = [(solution, filler) for solution in solutions for filler in fillers]
    return records.run(
        "solutions",
        questions,
        lambda one: outcome(one[0], cut(one[0], gaps, seed), one[1]),
        key=lambda one: (one[1].name, one[0].task_id),
        answered=lambda one: (one.engine, one.task_id),
    )


def outcome(solution: Solution, request: InfillRequest, filler: Filler) -> Outcome:
    """Fills the gaps of a solution, compiles it and runs its tests."""
    began = time.perf_counter()
    result = filler.fill(request)
    ms = (time.perf_counter() - began) * 1e3
    text = request.filled(result.fills)
    compiles, passed = run(f"{text}\n{solution.test}")
    return Outcome(
        filler.name,
        solution.task_id,
        result.fills,
        not parser_of("cpp").parse(text.encode()).root_node.has_error,
        compiles,
        passed and result.status == "ok",
        result.status != "ok",
        result.stats.tokens,
        result.stats.nfe,
        round(ms, 1),
    )


def run(program: str) -> tuple[bool, bool]:
    """Whether a program compiles, and whether its last function ends well within its limits, without network."""
    token = secrets.token_hex(16)  # so that an early exit counts as a failure
    head, brace, tail = program.rpartition("}")
    with tempfile.TemporaryDirectory(prefix="lacuna-cpp-") as folder:
        source, made = Path(folder) / "solution.cpp", Path(folder) / "solution"
        source.write_text(f'#include <cstdio>\n{head}std::puts("{token}");{brace}{tail}')
        # What a model writes may take a compiler for ever.
        compiling = [*COMPILER, str(source), "-o", str(made)]
        running = [sys.executable, "-I", "-S", "-B", sandbox.__file__, "--program", str(made)]
        try:
            if subprocess.run(compiling, capture_output=True, timeout=COMPILING_S).returncode:
                return False, False
            ran = subprocess.run(running, capture_output=True, timeout=RUNNING_S)
            return True, ran.returncode == 0 and token.encode() in ran.stdout
        except subprocess.TimeoutExpired:
            return made.exists(), False


def rows(outcomes: Sequence[Outcome], gaps: int) -> list[Row]:
    """The figures of every engine."""
    found: list[Row] = []
    for engine in dict.fromkeys(one.engine for one in outcomes):
        own = [one for one in outcomes if one.engine == engine]
        row: Row = {
            "engine": engine,
            "gaps": gaps,
            "solutions": len(own),
            **rated("passed", sum(one.passed for one in own), len(own)),
            "compile": sum(one.compiles for one in own),
            "parse": sum(one.parses for one in own),
            "refused": sum(one.refused for one in own),
            "tokens": sum(one.tokens for one in own),
            "passes": sum(one.nfe for one in own),
        }
        found.append({**row, **times([one.ms for one in own])})
    return found
