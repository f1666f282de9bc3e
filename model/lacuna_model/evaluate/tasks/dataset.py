"""Reads HumanEval-Infilling problems (github.com/openai/human-eval-infilling) from gzipped JSON lines."""

import gzip
import zlib
from pathlib import Path
from typing import Literal

import msgspec

from lacuna_model.core.errors import LacunaError

Kind = Literal["single", "multi", "span"]

KINDS: dict[str, Kind] = {"SingleLineInfilling": "single", "MultiLineInfilling": "multi", "RandomSpanInfilling": "span"}


class DatasetError(LacunaError):
    """Evaluation data that is missing or damaged."""


class Problem(msgspec.Struct, frozen=True):
    """One gap with the tests that judge its fill.

    ``canonical_solution`` is what stood in the gap between ``prompt`` and ``suffix``; ``test`` defines
    ``check(candidate)``, to be called with the function named ``entry_point``.
    """

    task_id: str
    entry_point: str
    prompt: str
    suffix: str
    canonical_solution: str
    test: str

    @property
    def kind(self) -> Kind:
        """Which of the three benchmarks the problem belongs to."""
        return KINDS[self.task_id.split("/", 1)[0]]

    def document(self, fill: str) -> str:
        """The whole file with ``fill`` in the gap."""
        return self.prompt + fill + self.suffix

    def program(self, fill: str) -> str:
        """The file with its tests, ending in the call that runs them."""
        return f"{self.document(fill)}\n{self.test}\ncheck({self.entry_point})\n"


def load_problems(path: Path) -> list[Problem]:
    """All problems of a ``.jsonl.gz`` file, in its order.

    Raises DatasetError where the file is missing, cut off, not gzip, or holds a line that is no problem.
    """
    try:
        with gzip.open(path, "rb") as file:
            lines = file.read().splitlines()
    except FileNotFoundError as error:
        raise DatasetError(f"no evaluation data at {path}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path} is damaged or no gzip file ({error})") from error
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
    """At most ``limit`` problems, the kinds in the proportions of the whole and evenly spaced within each.

    Deterministic, so that two runs with the same limit compare; 0 means all. Keeps the order of ``problems``.
    """
    if limit <= 0 or limit >= len(problems):
        return problems
    by_kind: dict[Kind, list[int]] = {}
    for i, problem in enumerate(problems):
        by_kind.setdefault(problem.kind, []).append(i)
    # Sorted by kind, evenly spaced picks give each kind its share, at most one off.
    order = [i for kind in sorted(by_kind) for i in by_kind[kind]]
    picks = {order[(2 * pick + 1) * len(order) // (2 * limit)] for pick in range(limit)}
    return [problems[i] for i in sorted(picks)]
