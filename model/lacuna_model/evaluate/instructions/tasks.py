"""The tasks: lines of published source files, instructions for them, and what the result has to be."""

import tomllib
from importlib import resources
from itertools import zip_longest
from pathlib import PurePath

import msgspec

FOLDER = resources.files("lacuna_model.evaluate.instructions")
LANGUAGES = {".py": "python", ".js": "javascript", ".c": "c", ".h": "c", ".go": "go"}


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lines (first and last, from 1) of a file in ``sources/``, an instruction for them, and how they are judged.

    The regular expressions of ``has`` must occur in the new lines, and those of ``lacks`` must not. ``run`` is a
    program that is appended to the new file.
    """

    file: str
    lines: tuple[int, int]
    instruction: str
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    run: str = ""

    @property
    def language(self) -> str:
        """The language of the file."""
        return LANGUAGES[PurePath(self.file).suffix]

    @property
    def text(self) -> str:
        """The whole file."""
        return (FOLDER / "sources" / f"{self.file}.txt").read_text(encoding="utf-8")

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


def load_tasks() -> list[Task]:
    """All tasks, one of each language in turn, so that the first of them are a fair share of all languages."""
    tasks = msgspec.convert(_data()["tasks"], list[Task])
    languages = [[task for task in tasks if task.language == name] for name in dict.fromkeys(LANGUAGES.values())]
    return [task for group in zip_longest(*languages) for task in group if task is not None]


def stubs(file: str) -> dict[str, str]:
    """Lines of a file that need the rest of its package, and what takes their place when a program runs."""
    return msgspec.convert(_data()["stubs"].get(file, {}), dict[str, str])


def _data() -> dict[str, dict[str, object]]:
    return tomllib.loads((FOLDER / "tasks.toml").read_text(encoding="utf-8"))
