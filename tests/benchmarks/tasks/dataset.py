"""HumanEval-Infilling (github.com/openai/human-eval-infilling) from gzipped JSON lines: one gap, or several at once."""

import gzip
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from tests.benchmarks.tasks import sandbox
from tests.benchmarks.tasks.fills import Question, Scores

from lacuna_model.core.errors import LacunaError, RequestError
from lacuna_model.core.params import InfillRequest, Region, with_fills
from training.files import parses

Kind = Literal["single", "multi", "span"]

KINDS: dict[str, Kind] = {"SingleLineInfilling": "single", "MultiLineInfilling": "multi", "RandomSpanInfilling": "span"}
# The token limit per kind, well above the longest solution; engines get no other information about it.
MAX_TOKENS: dict[Kind, int] = {"single": 64, "multi": 192, "span": 96}


class DatasetError(LacunaError):
    """Evaluation data is missing or damaged."""


class Problem(msgspec.Struct, frozen=True):
    """One gap with the tests for its fill.

    ``canonical_solution`` is the true text of the gap between ``prompt`` and ``suffix``. ``test`` defines
    ``check(candidate)``, which takes the function named ``entry_point``.
    """

    task_id: str
    entry_point: str
    prompt: str
    suffix: str
    canonical_solution: str
    test: str

    @property
    def kind(self) -> Kind:
        """The benchmark that the problem belongs to."""
        return KINDS[self.task_id.split("/", 1)[0]]

    @property
    def request(self) -> InfillRequest:
        """What engines are asked: an empty gap, without information about the true text."""
        gap = len(self.prompt.encode())
        region = Region(gap, gap, max_tokens=MAX_TOKENS[self.kind])
        return InfillRequest(text=self.document(""), regions=(region,), path="solution.py", language="python")

    def document(self, fill: str) -> str:
        """Returns the whole file with ``fill`` in the gap."""
        return self.prompt + fill + self.suffix

    def program(self, fill: str) -> str:
        """Returns the file with its tests and the call that runs them."""
        return self.tested(self.document(fill))

    def tested(self, text: str) -> str:
        """Returns a file with the problem's tests and the call that runs them."""
        return f"{text}\n{self.test}\ncheck({self.entry_point})\n"

    def scores(self, text: str, fills: Sequence[str]) -> Scores:
        """Judges a filled file by the tests."""
        outcome = sandbox.run(self.tested(text))
        exact = text.rstrip() == self.document(self.canonical_solution).rstrip()
        counts = {"passed": int(outcome.verdict == "passed"), "exact": int(exact), "parse": int(parses(text, "python"))}
        return Scores(counts, detail=f"{outcome.verdict} {outcome.detail}".strip())

    def question(self) -> Question:
        """The problem as an evaluation asks it."""
        return Question(self.task_id, self.kind, self.request, self.scores)


def json_lines(path: Path) -> bytes:
    """The lines of a ``.jsonl.gz`` file; raises DatasetError where it is missing, cut off or not gzip."""
    try:
        return gzip.decompress(path.read_bytes())
    except FileNotFoundError as error:
        raise DatasetError(f"no evaluation data at {path}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path} is damaged or no gzip file ({error})") from error


def load_problems(path: Path) -> list[Problem]:
    """Returns all problems of a ``.jsonl.gz`` file, in its order.

    Raises DatasetError as :func:`json_lines` does, or where a line is no problem.
    """
    try:
        problems = msgspec.json.Decoder(Problem).decode_lines(json_lines(path))
    except msgspec.DecodeError as error:
        raise DatasetError(f"{path}: not a HumanEval-Infilling problem ({error})") from error
    if not problems or any(one.task_id.split("/", 1)[0] not in KINDS for one in problems):
        raise DatasetError(f"{path} holds no problems of HumanEval-Infilling, or others")
    return problems


def spread(problems: list[Problem], limit: int) -> list[Problem]:
    """Returns at most ``limit`` problems, evenly spaced, with the kinds in the proportions of the whole.

    The selection is deterministic, so that runs with the same limit are comparable; 0 means all. Keeps the order.
    """
    if limit <= 0 or limit >= len(problems):
        return problems
    # Evenly spaced picks from a list sorted by kind give each kind its share, within one.
    order = sorted(range(len(problems)), key=lambda i: problems[i].kind)
    picks = {order[(2 * pick + 1) * len(order) // (2 * limit)] for pick in range(limit)}
    return [problems[i] for i in sorted(picks)]


def several(problems: Sequence[Problem], gaps: int) -> list[Question]:
    """A solution with ``gaps`` gaps for every task with enough single-line problems, evenly spread.

    Lines that follow each other are one gap, not two: a solution that has only such lines is left out.

    Raises RequestError if there is none.
    """
    by_task: dict[str, list[Problem]] = {}
    for problem in problems:
        if problem.kind == "single":
            by_task.setdefault("/".join(problem.task_id.split("/")[1:3]), []).append(problem)
    found = []
    for task, own in by_task.items():
        ordered = sorted(own, key=lambda problem: len(problem.prompt))
        if len(ordered) >= gaps:
            places = np.linspace(0, len(ordered) - 1, gaps).round().astype(int)
            request = _cut([ordered[place] for place in places])
            if all(one.start < other.start for one, other in pairwise(request.regions)):
                found.append(Question(task, f"{gaps} gaps", request, own[0].scores))
    if not found:
        raise RequestError(f"no task has {gaps} problems of a single line with text between them")
    return found


def _cut(problems: Sequence[Problem]) -> InfillRequest:
    """A solution with the gaps of some problems."""
    text = problems[0].document(problems[0].canonical_solution).encode()
    spans, regions, removed = [], [], 0
    for problem in problems:
        (gap,) = problem.request.regions
        length = len(problem.canonical_solution.encode())
        spans.append(msgspec.structs.replace(gap, end=gap.start + length))
        regions.append(msgspec.structs.replace(gap, start=gap.start - removed, end=gap.start - removed))
        removed += length
    empty = with_fills(text, spans, [""] * len(spans)).decode()
    return InfillRequest(empty, tuple(regions), path="solution.py", language="python")
