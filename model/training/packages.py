"""The list of the corpus's packages: source, name, version and role of each."""

import re
from enum import StrEnum
from pathlib import Path

import msgspec

from lacuna_model.core.errors import LacunaError

_PIN = re.compile(r"(@?[\w.+/-]+)==([\w.+~:!-]+)")


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
        table = msgspec.toml.decode(path.read_bytes(), type=dict[str, dict[Role, list[str]]])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        wanted = f"a [source] has lists {', '.join(Role)} of name==version"
        raise CorpusError(f"{path}: {wanted}; this list is not valid: {error}") from error
    found: dict[tuple[str, str], Package] = {}
    for source, roles in table.items():
        for role, pins in roles.items():
            for pin in pins:
                if (match := _PIN.fullmatch(pin)) is None:
                    raise CorpusError(f"{path}: [{source}] {role}: {pin!r} is not of the form name==version")
                package = Package(source, match[1], match[2], role)
                # Training on a held-out package would make every validation figure worthless.
                other = found.setdefault((source, package.name.lower()), package)
                if other is not package:
                    raise CorpusError(f"{path}: {package.name} is listed twice ({other.role} and {role})")
    return tuple(found.values())
