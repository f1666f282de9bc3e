"""The list of the corpus's packages: source, name, version and role of each."""

import re
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from lacuna_model.core.errors import LacunaError

_PIN = re.compile(r"(?P<name>@?[\w.+/-]+)==(?P<version>[\w.+~:!-]+)")


class CorpusError(LacunaError):
    """A package list, download or corpus file cannot be used; the message names the file."""


class Role(StrEnum):
    """The use of a package; texts in `benchmark` packages are kept out of the corpus."""

    TRAIN = "train"
    HELD_OUT = "held-out"
    BENCHMARK = "benchmark"


class Package(msgspec.Struct, frozen=True):
    """One pinned package of one registry."""

    source: str
    name: str
    version: str
    role: Role


def read_packages(path: Path) -> tuple[Package, ...]:
    """Reads `[source]` tables with `train`, `held-out` and `benchmark` lists of `name==version`.

    Raises CorpusError for a list that is invalid or names a package twice, and OSError.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: the package list is not valid TOML: {error}") from error
    packages = tuple(_packages(path, table))
    # Training on a held-out package would make every validation figure worthless.
    seen: dict[tuple[str, str], Role] = {}
    for package in packages:
        key = (package.source, package.name.lower())
        if key in seen:
            raise CorpusError(f"{path}: {package.name} is listed twice ({seen[key]} and {package.role})")
        seen[key] = package.role
    return packages


def _packages(path: Path, table: dict[str, object]) -> Iterator[Package]:
    for source, roles in table.items():
        if not isinstance(roles, dict):
            raise CorpusError(f"{path}: {source!r} must be a table of roles")
        for role, pins in roles.items():
            if role not in {*Role} or not isinstance(pins, list):
                raise CorpusError(f"{path}: [{source}] {role!r} must be one of the lists {', '.join(Role)}")
            for pin in pins:
                match = _PIN.fullmatch(pin) if isinstance(pin, str) else None
                if match is None:
                    raise CorpusError(f"{path}: [{source}] {role}: {pin!r} is not of the form name==version")
                yield Package(source, match["name"], match["version"], Role(role))
