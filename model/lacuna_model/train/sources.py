"""What the corpus asks of a registry: what to download for a package, and what was in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from lacuna_model import atomic
from lacuna_model.train.download import Artifact
from lacuna_model.train.packages import CorpusError, Package


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

    def artifacts(self, package: Package, folder: Path) -> tuple[Artifact, ...]:
        """Look up what to download; what the registry answered may be kept in the folder."""
        ...

    def contents(self, package: Package, paths: Sequence[Path]) -> Contents:
        """Read licence and source files from the downloads."""
        ...


def keep(artifacts: tuple[Artifact, ...], path: Path) -> tuple[Artifact, ...]:
    """Remember a registry's answer, so that a rebuild asks for nothing that it already has."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic.replacing(path) as stream:
            stream.write(msgspec.json.encode(artifacts))
    except OSError as error:
        raise CorpusError(f"{path}: cannot write what the registry answered: {error.strerror}") from error
    return artifacts


def kept(path: Path) -> tuple[Artifact, ...]:
    """Return a remembered answer, or nothing."""
    if not path.is_file():
        return ()
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[Artifact, ...])
    except msgspec.DecodeError as error:
        raise CorpusError(f"{path}: damaged, delete it and build again: {error}") from error
