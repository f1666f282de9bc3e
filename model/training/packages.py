"""The list of the corpus's packages: source, name, version and role of each."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from lacuna_model.core.errors import LacunaError

_Pin = Annotated[str, msgspec.Meta(pattern=r"^@?[\w.+/-]+==[\w.+~:!-]+$")]


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
        table = msgspec.toml.decode(path.read_bytes(), type=dict[str, dict[Role, list[_Pin]]])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: the package list cannot be used: {error}") from error
    found: dict[tuple[str, str], Package] = {}
    for source, roles in table.items():
        for role, pins in roles.items():
            for pin in pins:
                name, _, version = pin.partition("==")
                package = Package(source, name, version, role)
                # Training on a held-out package would make every validation figure worthless.
                other = found.setdefault((source, name.lower()), package)
                if other is not package:
                    raise CorpusError(f"{path}: {name} is listed twice ({other.role} and {role})")
    return tuple(found.values())
