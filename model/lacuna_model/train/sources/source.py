"""What the corpus asks of a registry: the files of a package, and what was in them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from lacuna_model.train.stored.packages import Package


class SourceFile(msgspec.Struct, frozen=True):
    """One source file of a package; no licence means that this file must not be used."""

    path: str
    data: bytes
    licence: str | None


class Contents(msgspec.Struct):
    """What was found in a package's downloads; no licence means that it must not be used."""

    licence: str | None
    stated_licence: str
    files: list[SourceFile]


class Source(Protocol):
    """A registry of packages."""

    @property
    def languages(self) -> frozenset[str]:
        """Languages that this registry's packages are read for."""
        ...

    def fetch(self, package: Package, folder: Path) -> tuple[Path, ...]:
        """The package's files, downloaded to a place of their own in ``folder`` where they are not there yet."""
        ...

    def contents(self, package: Package, paths: Sequence[Path]) -> Contents:
        """Read licence and source files from the downloads."""
        ...
