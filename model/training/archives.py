"""Fetches packages and reads their archives; unpacks nothing to disk and runs nothing of theirs."""

import io
import os
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from lzma import LZMAError
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec.structs import replace

from lacuna_model.core.errors import DownloadError, NotPublishedError
from lacuna_model.hub.download import shortened
from training.files import language_of
from training.packages import CorpusError, Package

Wanted = Callable[[str], bool]
_MAX_MEMBER = 2_000_000
_AR_MAGIC = b"!<arch>\n"
_AR_MEMBER = struct.Struct("16s12s6s6s8s10s2s")
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    LZMAError,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
)


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


class Licences(NamedTuple):
    """The licence of a package, None where it must not be used, as the package states it, and that of a file."""

    licence: str | None
    stated: str
    of: Callable[[str], str | None]


class Registry:
    """A registry of packages, in whose archives some files state the licence."""

    languages: frozenset[str]
    # The files that state the licence, and how the package manager says that there is no such package.
    states: re.Pattern[str]
    absent: re.Pattern[str]

    def command(self, package: Package) -> tuple[str, ...]:
        """The package manager's command that downloads a package into its working folder."""
        raise NotImplementedError

    def inner(self, path: Path, name: str) -> str:
        """The path of a file in the package, of its ``name`` in the archive ``path``."""
        return name.removeprefix("./")

    def licences(self, stated: Mapping[str, bytes]) -> Licences:
        """The licences, by the files that state them. Raises CorpusError."""
        raise NotImplementedError

    def fetch(self, package: Package, folder: Path) -> tuple[Path, ...]:
        """Returns the package's files; downloads them to a folder of their own in ``folder`` if they are missing."""
        return fetch(package, folder, lambda files: run(self.command(package), files, self.absent))

    def contents(self, package: Package, paths: Sequence[Path]) -> Contents:
        """Reads the licence and the source files of this registry's languages."""
        stated: dict[str, bytes] = {}
        files: dict[str, bytes] = {}
        for path in paths:
            for name, data in read_archive(path, self._wanted):
                if self.states.fullmatch(name):
                    stated[name] = data
                else:
                    files[self.inner(path, name)] = data
        files = self.without_root(files)
        found = self.licences(stated)
        chosen = [SourceFile(name, files[name], found.of(name)) for name in sorted(files)]
        return Contents(found.licence, found.stated, chosen)

    def without_root(self, files: dict[str, bytes]) -> dict[str, bytes]:
        """The files without a folder that all of them share and that says nothing."""
        return files

    def _wanted(self, name: str) -> bool:
        return self.states.fullmatch(name) is not None or language_of(name) in self.languages


class Releases(Registry):
    """A registry that keeps older releases."""

    def version_of(self, package: Package, path: Path) -> str:
        """The version of a package's file."""
        raise NotImplementedError

    def before(self, package: Package, folder: Path) -> tuple[Package, tuple[Path, ...]]:
        """Returns the newest release that is older, and its files; raises NotPublishedError without one."""
        paths = self.fetch(replace(package, version=f"<{package.version}"), folder)
        return replace(package, version=self.version_of(package, paths[0])), paths


def fetch(package: Package, folder: Path, get: Callable[[Path], None]) -> tuple[Path, ...]:
    """Returns the files of a package, kept in ``folder``; calls ``get`` with an empty folder to download missing ones.

    Either all files of a package are kept or none. A version may be a range, as in "<1.2". Raises NotPublishedError if
    the registry has no such package, else DownloadError.
    """
    kept = folder / package.source / f"{package.name.replace('/', '-')}-{package.version.replace('<', 'before-')}"
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder) as scratch:
            files = Path(scratch) / "files"
            files.mkdir()
            get(files)
            os.replace(files, kept)
    return tuple(sorted(path for path in kept.iterdir() if path.is_file()))


def run(command: Sequence[str], folder: Path, absent: re.Pattern[str]) -> None:
    """Runs a package manager in ``folder``, without input.

    Raises NotPublishedError if its output matches ``absent``, else DownloadError with its first complaint.
    """
    if shutil.which(command[0]) is None:
        raise DownloadError(f"{command[0]} is not on this machine; it fetches {command[-1]}")
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode == 0:
        return
    output = done.stdout.decode(errors="replace")
    if absent.search(output):
        raise NotPublishedError(f"{command[-1]}: {command[0]} finds no such package")
    complaints = re.findall(r"^(?:E:|npm (?:error|ERR!)(?! code| A complete log)) *(\S.*)$", output, re.MULTILINE)
    reason = (complaints or output.strip().splitlines()[-1:] or [f"it ended with code {done.returncode}"])[0]
    raise DownloadError(f"{command[0]} cannot fetch {command[-1]}: {shortened(reason)}")


def read_archive(path: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    """Yields (name, data) of the wanted regular files, in the archive's order; raises CorpusError if it is damaged."""
    try:
        if path.suffix == ".deb":
            with path.open("rb") as package:
                yield from _read_tar(_data_member(package), wanted)
        elif zipfile.is_zipfile(path):
            yield from _read_zip(path, wanted)
        else:
            with path.open("rb") as tarball:
                yield from _read_tar(tarball, wanted)
    except _DAMAGE as error:
        raise CorpusError(f"{path}: the archive is damaged: {error}") from error


def _read_zip(path: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and member.file_size <= _MAX_MEMBER and wanted(member.filename):
                yield member.filename, archive.read(member)


def _read_tar(stream: BinaryIO, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    # Stream mode reads a compressed tarball once, from start to end.
    with tarfile.open(fileobj=stream, mode="r|*") as archive:
        for member in archive:
            if member.isreg() and member.size <= _MAX_MEMBER and wanted(member.name):
                file = archive.extractfile(member)
                if file is not None:
                    yield member.name, file.read()


def _data_member(package: BinaryIO) -> BinaryIO:
    """Returns the tarball of installed files inside a Debian package, which is an `ar` archive."""
    if package.read(len(_AR_MAGIC)) != _AR_MAGIC:
        raise ValueError("not a Debian package")
    while True:
        name, _, _, _, _, size, _ = _AR_MEMBER.unpack(package.read(_AR_MEMBER.size))
        if name.startswith(b"data.tar"):
            return io.BytesIO(package.read(int(size)))
        package.seek(int(size) + int(size) % 2, io.SEEK_CUR)
