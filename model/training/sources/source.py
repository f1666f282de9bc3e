"""The interface of a registry: it fetches packages and reads their contents."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from training.stored.packages import Package


class SourceFile(msgspec.Struct, frozen=True):
    """One source file of a package; without a licence it must not be used."""

    path: str
    data: bytes
    licence: str | None


class Contents(msgspec.Struct):
    """The contents of a package; without a licence it must not be used."""

    licence: str | None
    stated_licence: str
    files: list[SourceFile]


class Source(Protocol):
    """A registry of packages."""

    @property
    def languages(self) -> frozenset[str]:
        """The languages that are read from this registry."""
        ...

    def fetch(self, package: Package, folder: Path) -> tuple[Path, ...]:
        """Returns the package's files; downloads them to a folder of their own in ``folder`` if they are missing."""
        ...

    def contents(self, package: Package, paths: Sequence[Path]) -> Contents:
        """Reads licence and source files from the downloads."""
        ...


class Releases(Source, Protocol):
    """A registry that keeps older releases."""

    def before(self, package: Package, folder: Path) -> tuple[Package, tuple[Path, ...]]:
        """Returns the release before a package's version, and its files; raises NotPublishedError without one."""
        ...
