"""Fetches C, C++ and Java from Debian's source packages, and Go and Rust from its `-dev` packages, through apt."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from training.accepted.copyright import FileLicences
from training.accepted.languages import language_of
from training.sources.archives import read_archive
from training.sources.download import fetch, run
from training.sources.source import Contents, SourceFile
from training.stored.packages import Package

_TARBALL = re.compile(r".*\.(orig(-(?P<component>[\w-]+))?|debian)\.tar\.(gz|xz|bz2)")
_SOURCE_COPYRIGHT = "debian/copyright"
_DOC_COPYRIGHT = re.compile(r"(\./)?usr/share/doc/[^/]+/copyright")
_ABSENT = re.compile(
    r"^E: (Unable to locate package|Unable to find a source package|Version '.*' for '.*' was not found"
    r"|Can not find version|Failed to fetch \S+ +404)",
    re.MULTILINE,
)


class DebianSources:
    """Upstream tarballs, with the licence of every file from Debian's own tarball."""

    languages = frozenset({"c", "cpp", "java"})

    def fetch(self, package: Package, folder: Path) -> tuple[Path, ...]:
        """Returns the tarballs of a source package; the machine's apt needs source entries (``deb-src``)."""
        command = ("apt-get", "source", "--download-only", "--only-source", f"{package.name}={package.version}")
        files = fetch(package, folder, lambda files: run(command, files, _ABSENT))
        return tuple(path for path in files if _TARBALL.fullmatch(path.name))

    def contents(self, package: Package, paths: Sequence[Path]) -> Contents:
        """Reads ``debian/copyright`` and the source files that it covers."""
        files: dict[str, bytes] = {}
        for path in paths:
            match = _TARBALL.fullmatch(path.name)
            component = match["component"] if match else None
            for name, data in read_archive(path, self._wanted):
                inner = name if name.startswith("debian/") else name.removeprefix("./").partition("/")[2]
                files[f"{component}/{inner}" if component else inner] = data
        return _contents(files.pop(_SOURCE_COPYRIGHT, b""), files)

    def _wanted(self, name: str) -> bool:
        return name == _SOURCE_COPYRIGHT or (not name.startswith("debian/") and language_of(name) in self.languages)


class DebianLibraries:
    """`golang-*-dev` and `librust-*-dev` packages, which contain the libraries' sources."""

    languages = frozenset({"go", "rust"})

    def fetch(self, package: Package, folder: Path) -> tuple[Path, ...]:
        """Returns the only file of a binary package."""
        command = ("apt-get", "download", f"{package.name}={package.version}")
        return fetch(package, folder, lambda files: run(command, files, _ABSENT))

    def contents(self, package: Package, paths: Sequence[Path]) -> Contents:
        """Reads the copyright file and the sources; removes the prefix that all paths share."""
        files: dict[str, bytes] = {}
        statement = b""
        for path in paths:
            for name, data in read_archive(path, self._wanted):
                if _DOC_COPYRIGHT.fullmatch(name):
                    statement = data
                else:
                    files[name.removeprefix("./")] = data
        root = posixpath.commonpath(posixpath.dirname(name) for name in files) if files else ""
        return _contents(statement, {posixpath.relpath(name, root or "."): files[name] for name in files})

    def _wanted(self, name: str) -> bool:
        return _DOC_COPYRIGHT.fullmatch(name) is not None or language_of(name) in self.languages


def _contents(statement: bytes, files: Mapping[str, bytes]) -> Contents:
    licences = FileLicences(statement.decode("utf-8", errors="replace"))
    chosen = [SourceFile(name, files[name], licences.of(name)) for name in sorted(files)]
    return Contents(licences.of(""), licences.stated, chosen)
