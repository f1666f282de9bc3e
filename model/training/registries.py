"""The registries: PyPI through pip, npm through npm, and Debian through apt; how their packages are fetched and read.

Nothing is unpacked to disk, and nothing of a package is run.
"""

import io
import os
import posixpath
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
from packaging.metadata import RawMetadata, parse_email
from packaging.utils import parse_wheel_filename

from lacuna_model.core.errors import DownloadError, NotPublishedError
from lacuna_model.hub.download import pip_download, shortened
from training.files import language_of
from training.licences import FileLicences, permissive_licence
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


class SourceFile(NamedTuple):
    """One source file of a package; without a licence it must not be used."""

    path: str
    data: bytes
    licence: str | None


class Licences(NamedTuple):
    """The licence of a package, None where it must not be used, as the package states it, and that of a file."""

    package: str | None
    stated: str
    of: Callable[[str], str | None]


class Registry:
    """A registry of packages, in whose archives some files state the licence."""

    languages: frozenset[str]
    # The package manager's command, which downloads a package into its working folder; how it says that there is none.
    command: tuple[str, ...]
    absent: re.Pattern[str]
    # The files that state the licence.
    states: re.Pattern[str]

    def version_of(self, package: Package, path: Path) -> str:
        """The version of a package's file; of registries that keep older releases alone."""
        raise NotImplementedError

    def inner(self, path: Path, name: str) -> str:
        """The path of a file in the package, of its ``name`` in the archive ``path``."""
        return name.removeprefix("./")

    def licences(self, stated: Mapping[str, bytes]) -> Licences:
        """The licences, by the files that state them. Raises CorpusError."""
        raise NotImplementedError

    def without_root(self, files: dict[str, bytes]) -> dict[str, bytes]:
        """The files without a folder that all of them share and that says nothing."""
        return files

    def download(self, package: Package, folder: Path) -> None:
        """Downloads a package's files to an empty folder. Raises NotPublishedError and DownloadError."""
        run([part.format(package) for part in self.command], folder, self.absent)

    def fetch(self, package: Package, folder: Path) -> tuple[Path, ...]:
        """Returns the package's files; downloads them to a folder of their own in ``folder`` if they are missing.

        Either all files of a package are kept or none. A version may be a range, as in "<1.2". Raises NotPublishedError
        if the registry has no such package, else DownloadError.
        """
        kept = folder / package.source / f"{package.name.replace('/', '-')}-{package.version.replace('<', 'before-')}"
        if not kept.is_dir():
            kept.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder) as scratch:
                files = Path(scratch) / "files"
                files.mkdir()
                self.download(package, files)
                os.replace(files, kept)
        return tuple(sorted(path for path in kept.iterdir() if path.is_file()))

    def before(self, package: Package, folder: Path) -> tuple[Package, tuple[Path, ...]]:
        """Returns the newest release that is older, and its files; raises NotPublishedError without one."""
        paths = self.fetch(replace(package, version=f"<{package.version}"), folder)
        return replace(package, version=self.version_of(package, paths[0])), paths

    def contents(self, paths: Sequence[Path]) -> tuple[Licences, list[SourceFile]]:
        """Reads the licences and the source files of this registry's languages. Raises CorpusError."""
        stated: dict[str, bytes] = {}
        files: dict[str, bytes] = {}
        for path in paths:
            for name, data in read_archive(path, self._wanted):
                if self.states.fullmatch(name):
                    stated[name] = data
                else:
                    files[self.inner(path, name)] = data
        files, found = self.without_root(files), self.licences(stated)
        return found, [SourceFile(name, files[name], found.of(name)) for name in sorted(files)]

    def _wanted(self, name: str) -> bool:
        return self.states.fullmatch(name) is not None or language_of(name) in self.languages


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


class PyPI(Registry):
    """The Python package index, through pip.

    Only wheels are used: to fetch a source distribution, pip runs its build script.
    """

    languages = frozenset({"python"})
    states = re.compile(r"[^/]+\.dist-info/METADATA|(?i:[^/]+(/licenses)?/(LICEN[CS]E|COPYING)(\.\w+)?)")

    def download(self, package: Package, folder: Path) -> None:
        """Downloads the package's wheel."""
        wanted = package.version if package.version.startswith("<") else f"=={package.version}"
        pip_download(f"{package.name}{wanted}", folder)

    def version_of(self, package: Package, path: Path) -> str:
        """The version in the name of a wheel."""
        return str(parse_wheel_filename(path.name)[1])

    def licences(self, stated: Mapping[str, bytes]) -> Licences:
        """One licence for all files: the metadata's, or that of a licence file."""
        metadata: RawMetadata = {}
        text = ""
        for name, data in stated.items():
            if name.endswith("/METADATA"):
                metadata, _ = parse_email(data)
            else:
                text = data.decode("utf-8", errors="replace")
        expression, free = metadata.get("license_expression"), metadata.get("license")
        classifiers = [name for name in metadata.get("classifiers", ()) if name.startswith("License ::")]
        said = expression or ", ".join(classifiers) or free
        licence = permissive_licence(expression, classifiers, text if said is None else free)
        words = "only a licence file" if said is None else " ".join(said.split())[:100]
        return Licences(licence, words, lambda name: licence)


class _LicenceField(msgspec.Struct):
    type: str = ""


class _PackageJson(msgspec.Struct):
    license: str | _LicenceField | None = None
    licenses: list[_LicenceField] = []

    def stated(self) -> str:
        """Returns the licence, from today's field or from one of the two older ones."""
        if isinstance(self.license, str):
            return self.license
        old = [self.license] if self.license else self.licenses
        return " OR ".join(field.type for field in old)


class Npm(Registry):
    """Packages of the npm registry as published; the filters remove compiled and bundled files."""

    languages = frozenset({"javascript", "typescript", "tsx"})
    command = ("npm", "pack", "--ignore-scripts", "{0.name}@{0.version}")
    states = re.compile(r"[^/]*/package\.json")
    absent = re.compile(r"^npm (error|ERR!) code (E404|ETARGET)", re.MULTILINE)

    def version_of(self, package: Package, path: Path) -> str:
        """The version in the name of a tarball."""
        return path.stem.removeprefix(package.name.removeprefix("@").replace("/", "-") + "-")

    def inner(self, path: Path, name: str) -> str:
        """All files are in one folder, whose name says nothing."""
        return name.partition("/")[2]

    def licences(self, stated: Mapping[str, bytes]) -> Licences:
        """The licence in ``package.json``, for all files."""
        said = ""
        for data in stated.values():
            try:
                said = msgspec.json.decode(data, type=_PackageJson).stated()
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise CorpusError(f"package.json is not valid: {error}") from error
        licence = permissive_licence(said)
        return Licences(licence, said or "none", lambda name: licence)


class _Debian(Registry):
    absent = re.compile(
        r"^E: (Unable to locate package|Unable to find a source package|Version '.*' for '.*' was not found"
        r"|Can not find version|Failed to fetch \S+ +404)",
        re.MULTILINE,
    )

    def licences(self, stated: Mapping[str, bytes]) -> Licences:
        """The licence of each file, as Debian has found it."""
        statement = b"".join(list(stated.values())[-1:])
        found = FileLicences(statement.decode("utf-8", errors="replace"))
        return Licences(found.of(""), found.stated, found.of)


class DebianSources(_Debian):
    """Upstream tarballs, with the licence of every file from Debian's own tarball."""

    languages = frozenset({"c", "cpp", "java"})
    # The machine's apt needs source entries (``deb-src``).
    command = ("apt-get", "source", "--download-only", "--only-source", "{0.name}={0.version}")
    states = re.compile(r"debian/copyright")
    _tarball = re.compile(r".*\.(orig(-(?P<component>[\w-]+))?|debian)\.tar\.(gz|xz|bz2)")

    def fetch(self, package: Package, folder: Path) -> tuple[Path, ...]:
        """Returns the tarballs of a source package."""
        return tuple(path for path in super().fetch(package, folder) if self._tarball.fullmatch(path.name))

    def inner(self, path: Path, name: str) -> str:
        """A component is a folder of the package; the top folder of a tarball says nothing."""
        match = self._tarball.fullmatch(path.name)
        inside = name.removeprefix("./").partition("/")[2]
        return f"{match['component']}/{inside}" if match and match["component"] else inside

    def _wanted(self, name: str) -> bool:
        return super()._wanted(name) and (self.states.fullmatch(name) is not None or not name.startswith("debian/"))


class DebianLibraries(_Debian):
    """`golang-*-dev` and `librust-*-dev` packages, which contain the libraries' sources."""

    languages = frozenset({"go", "rust"})
    command = ("apt-get", "download", "{0.name}={0.version}")
    states = re.compile(r"(\./)?usr/share/doc/[^/]+/copyright")

    def without_root(self, files: dict[str, bytes]) -> dict[str, bytes]:
        """Removes the prefix that all paths share."""
        root = posixpath.commonpath(posixpath.dirname(name) for name in files) if files else ""
        return {posixpath.relpath(name, root or "."): data for name, data in files.items()}
