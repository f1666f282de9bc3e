"""The constraint's behaviour as data: texts with a gap, the fills that it takes and the fills that it refuses.

``tests/data/constraint`` has a file for each kind of case. The cases do not depend on how the constraint works.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

FOLDER = Path(__file__).parents[2] / "data" / "constraint"


@dataclass(frozen=True)
class Case:
    """A gap between two texts of a language, its valid fills (``takes``) and invalid ones (``refuses``).

    With ``judged_only`` this holds for a check of the fills only; a search may deliver other fills.
    """

    name: str
    language: str
    before: str
    after: str
    takes: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    judged_only: bool = False

    @property
    def text(self) -> bytes:
        return (self.before + self.after).encode()

    @property
    def place(self) -> int:
        """The gap's byte offset."""
        return len(self.before.encode())


def load(name: str) -> list[ParameterSet]:
    """The cases of a file, as parameters of a test."""
    found = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))["case"]
    return [pytest.param(_case(one), id=f"{name}: {one['name']}") for one in found]


def every() -> list[ParameterSet]:
    """The cases of all files."""
    return [case for file in sorted(FOLDER.glob("*.toml")) for case in load(file.stem)]


def _case(values: dict[str, object]) -> Case:
    lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return Case(**{**values, **lists})  # type: ignore[arg-type]
