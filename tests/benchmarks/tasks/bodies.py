"""Methods of one line of classes of the standard library, two to four of a class cut out and filled together.

``python -m tests.benchmarks.tasks.bodies --model qwen2.5-coder-0.5b`` prints how many gaps have the original's text,
and how many hold nothing. Half of those that return something keep their ``return``. Each class is a file of its own.
"""

import ast
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lacuna_model.core import regions
from lacuna_model.core.params import InfillRequest
from lacuna_model.engine import Engine

MODULES = """
    fractions statistics queue sched shelve mailbox zipfile tarfile configparser cmd string tempfile numbers contextlib
    shlex optparse weakref ipaddress uuid pathlib functools selectors imaplib calendar datetime
"""
MAX_LINES, MAX_GAPS = 90, 4
NOTHING = ("", "return", "pass", "...")
RETURN = "return "


class Bodies(msgspec.Struct, frozen=True):
    """The text of a class with markers, and what stands in each of them."""

    path: str
    text: str
    truths: tuple[str, ...]


class Score(msgspec.Struct):
    """Counts of classes, refused classes, gaps, and gaps that hold nothing or the original's text."""

    classes: int = 0
    refused: int = 0
    gaps: int = 0
    nothing: int = 0
    exact: int = 0


def bodies(seed: int = 5) -> Iterator[Bodies]:
    """Yield the classes with two or more methods of one line; the seed chooses the gaps."""
    rng = random.Random(seed)
    for module in MODULES.split():
        path = Path(sysconfig.get_paths()["stdlib"], f"{module}.py")
        text = path.read_text() if path.is_file() else ""
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and (node.end_lineno or 0) - node.lineno <= MAX_LINES:
                found = [line for one in node.body if isinstance(one, ast.FunctionDef) for line in _line(one)]
                if len(found) > 1:
                    yield _cut(path.name, text.split("\n"), node, rng.sample(found, min(len(found), MAX_GAPS)), rng)


def _line(method: ast.FunctionDef) -> list[int]:
    """The line of a method's body, its docstring aside, if it is one and does something."""
    first = method.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    rest = method.body[documented:]
    if len(rest) != 1 or isinstance(rest[0], ast.Pass | ast.Raise):
        return []
    return [rest[0].lineno] if method.lineno < rest[0].lineno == rest[0].end_lineno else []


def _cut(path: str, lines: list[str], node: ast.ClassDef, chosen: list[int], rng: random.Random) -> Bodies:
    kept, truths = list[str](), list[str]()
    for number in range(node.lineno, (node.end_lineno or 0) + 1):
        line = lines[number - 1]
        if number in chosen:
            body = line.strip()
            whole = rng.random() < 0.5
            head = RETURN if body.startswith(RETURN) and not whole else ""
            truths.append(body.removeprefix(head))
            line = line[: line.index(body)] + head + regions.MARKER.decode()
        kept.append(line)
    return Bodies(path, "\n".join(kept) + "\n", tuple(truths))


def main(model: Annotated[str, typer.Option(help="Fill with this model.")] = "qwen2.5-coder-0.5b") -> None:
    """Fill the gaps of each class together, and print the score."""
    engine, score = Engine.load(model), Score()
    for one in bodies():
        result = engine.fill(InfillRequest(one.text, tuple(regions.marked(one.text.encode())), path=one.path))
        score.classes += 1
        score.gaps += len(one.truths)
        score.refused += result.status == "no_valid_fill"
        for fill, truth in zip(result.fills, one.truths, strict=True):
            score.nothing += fill.strip() in NOTHING
            score.exact += fill.strip() == truth
    print(msgspec.json.encode(score).decode())


if __name__ == "__main__":
    typer.run(main)
