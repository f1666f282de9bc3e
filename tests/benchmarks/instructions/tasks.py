"""The tasks: lines of files, instructions for them, and what the result has to be.

Those of ``tasks.toml`` are about published sources, those of ``ordinary.toml`` are ordinary ones about short texts,
and those of ``common.toml`` are the twenty that people try first.
"""

import tomllib
from importlib import resources
from itertools import zip_longest
from pathlib import PurePath
from typing import Literal

import msgspec
from msgspec import convert
from msgspec.structs import replace

from lacuna_model.languages.registry import language_for

Kind = Literal["sources", "ordinary", "common"]
FOLDER = resources.files("tests.benchmarks.instructions")
# What is no program in one of these, by the end or the whole of its name.
GROUPS = {
    ".sql": "sql",
    "Makefile": "scripts",
    "Dockerfile": "scripts",
    ".md": "prose",
    ".txt": "prose",
    ".ini": "configuration",
    ".env": "configuration",
    ".yaml": "configuration",
    ".toml": "configuration",
    ".json": "configuration",
}


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lines (first and last, from 1) of a file in ``sources/``, an instruction for them, and how they are judged.

    The regular expressions of ``has`` must occur in the new lines, and those of ``lacks`` must not. ``run`` is a
    program that is appended to the new file. ``touched`` are the lines that the instruction is about; with None, all
    are. With ``crlf``, the file's lines end in CR LF. ``folder`` is that of the file.
    """

    file: str
    lines: tuple[int, int]
    instruction: str
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    run: str = ""
    touched: tuple[int, ...] | None = None
    crlf: bool = False
    folder: str = "sources"

    @property
    def language(self) -> str:
        """The language of the file; "" where it has no grammar."""
        found = language_for(self.file)
        return found.name if found is not None else ""

    @property
    def group(self) -> str:
        """What the file is: a language, scripts, prose or configuration."""
        path = PurePath(self.file)
        return GROUPS.get(path.suffix or path.name) or self.language

    @property
    def text(self) -> str:
        """The whole file."""
        text = (FOLDER / self.folder / f"{self.file}.txt").read_text(encoding="utf-8")
        return text.replace("\n", "\r\n") if self.crlf else text

    @property
    def span(self) -> tuple[int, int]:
        """The byte offsets of the lines."""
        lines = self.text.splitlines(keepends=True)
        first, last = self.lines
        return len("".join(lines[: first - 1]).encode()), len("".join(lines[:last]).encode())

    @property
    def name(self) -> str:
        """Names the task: file, lines and instruction."""
        return f"{self.file}:{self.lines[0]}-{self.lines[1]} {self.instruction}"


def load_tasks(kind: Kind = "sources") -> list[Task]:
    """All tasks of one of the files, one of each group in turn, so that the first are a fair share of all."""
    found = _data("tasks.toml" if kind == "sources" else f"{kind}.toml")["tasks"]
    tasks = [replace(task, folder=kind) for task in convert(found, list[Task])]
    groups = [[task for task in tasks if task.group == name] for name in dict.fromkeys(task.group for task in tasks)]
    return [task for group in zip_longest(*groups) for task in group if task is not None]


def stubs(file: str) -> dict[str, str]:
    """Lines of a file that need the rest of its package, and what takes their place when a program runs."""
    return convert(_data("tasks.toml")["stubs"].get(file, {}), dict[str, str])


def _data(name: str) -> dict[str, dict[str, object]]:
    return tomllib.loads((FOLDER / name).read_text(encoding="utf-8"))
