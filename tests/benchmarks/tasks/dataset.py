"""Reads HumanEval-Infilling problems (github.com/openai/human-eval-infilling) from gzipped JSON lines."""

import gzip
import zlib
from pathlib import Path
from typing import Literal

import msgspec

from lacuna_model.core.errors import LacunaError
from lacuna_model.core.params import InfillRequest, Region

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
        return f"{self.document(fill)}\n{self.test}\ncheck({self.entry_point})\n"


def json_lines(path: Path) -> bytes:
    """The lines of a ``.jsonl.gz`` file; raises DatasetError where it is missing, cut off or not gzip."""
    try:
        with gzip.open(path, "rb") as file:
            return file.read()
    except FileNotFoundError as error:
        raise DatasetError(f"no evaluation data at {path}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path} is damaged or no gzip file ({error})") from error


def load_problems(path: Path) -> list[Problem]:
    """Returns all problems of a ``.jsonl.gz`` file, in its order.

    Raises DatasetError as :func:`json_lines` does, or where a line is no problem.
    """
    lines = json_lines(path).splitlines()
    decoder = msgspec.json.Decoder(Problem)
    problems: list[Problem] = []
    for number, line in enumerate(lines, start=1):
        try:
            problem = decoder.decode(line)
            _ = problem.kind
        except (msgspec.DecodeError, KeyError) as error:
            raise DatasetError(f"{path}, line {number}: not a HumanEval-Infilling problem ({error})") from error
        problems.append(problem)
    if not problems:
        raise DatasetError(f"{path} holds no problems")
    return problems


def spread(problems: list[Problem], limit: int) -> list[Problem]:
    """Returns at most ``limit`` problems, evenly spaced, with the kinds in the proportions of the whole.

    The selection is deterministic, so that runs with the same limit are comparable; 0 means all. Keeps the order.
    """
    if limit <= 0 or limit >= len(problems):
        return problems
    by_kind: dict[Kind, list[int]] = {}
    for i, problem in enumerate(problems):
        by_kind.setdefault(problem.kind, []).append(i)
    # Evenly spaced picks from a list sorted by kind give each kind its share, within one.
    order = [i for kind in sorted(by_kind) for i in by_kind[kind]]
    picks = {order[(2 * pick + 1) * len(order) // (2 * limit)] for pick in range(limit)}
    return [problems[i] for i in sorted(picks)]
