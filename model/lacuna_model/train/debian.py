"""C, C++ and Java from Debian's source packages, Go and Rust from the source trees in its `-dev` packages."""

import lzma
import posixpath
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from lacuna_model import atomic
from lacuna_model.train.archives import read_archive
from lacuna_model.train.copyright import FileLicences, paragraphs
from lacuna_model.train.download import Artifact, NotPublishedError, fetch_document
from lacuna_model.train.languages import language_of
from lacuna_model.train.packages import CorpusError, Package
from lacuna_model.train.sources import Contents, SourceFile, keep, kept

_MIRROR = "https://deb.debian.org/debian"
_TARBALL = re.compile(r".*\.(orig(-(?P<component>[\w-]+))?|debian)\.tar\.(gz|xz|bz2)")
_SOURCE_COPYRIGHT = "debian/copyright"
_DOC_COPYRIGHT = re.compile(r"(\./)?usr/share/doc/[^/]+/copyright")
_Paragraph = Mapping[str, str]


class Index:
    """The list of packages of one Debian release, fetched once and kept beside the downloads."""

    def __init__(self, name: str, location: str) -> None:
        self._name = name
        self._location = location
        self._url = f"{_MIRROR}/dists/{location}"
        self._lock = threading.Lock()
        self._paragraphs: dict[tuple[str, str], _Paragraph] = {}

    def __reduce__(self) -> tuple[type["Index"], tuple[str, str]]:
        """In another process it begins anew: neither the lock nor what was read goes along."""
        return Index, (self._name, self._location)

    def find(self, package: Package, folder: Path) -> _Paragraph:
        """Return what the release says about a package of exactly this version."""
        # Several downloads look packages up at once; one of them reads the index.
        with self._lock:
            if not self._paragraphs:
                self._paragraphs = self._read(folder / "metadata" / f"{self._name}.xz")
        paragraph = self._paragraphs.get((package.name, package.version))
        if paragraph is None:
            raise NotPublishedError(f"{package.name} {package.version}: not in {self._url}")
        return paragraph

    def _read(self, path: Path) -> dict[tuple[str, str], _Paragraph]:
        if not path.is_file():
            data = fetch_document(self._url, path.parent)
            with atomic.replacing(path) as stream:
                stream.write(data)
        try:
            with lzma.open(path, "rt", encoding="utf-8") as lines:
                return {(p["package"], p["version"]): p for p in paragraphs(lines)}
        except (lzma.LZMAError, EOFError, UnicodeDecodeError, KeyError) as error:
            raise CorpusError(f"{path}: the index of Debian packages is damaged: {error}") from error


class DebianSources:
    """Upstream tarballs, with a licence for every file from Debian's own tarball."""

    languages = frozenset({"c", "cpp", "java"})

    def __init__(self, suite: str = "bookworm") -> None:
        self._index = Index(f"debian-{suite}-sources", f"{suite}/main/source/Sources.xz")

    def artifacts(self, package: Package, folder: Path) -> tuple[Artifact, ...]:
        """Look up the tarballs of a source package."""
        path = folder / "metadata" / f"debian-source-{package.name}-{package.version}.json"
        if known := kept(path):
            return known
        paragraph = self._index.find(package, folder)
        artifacts = []
        for line in paragraph["checksums-sha256"].splitlines():
            digest, _, filename = line.split()
            if _TARBALL.fullmatch(filename):
                url = f"{_MIRROR}/{paragraph['directory']}/{filename}"
                artifacts.append(Artifact(url, filename, f"sha256:{digest}"))
        return keep(tuple(artifacts), path)

    def contents(self, package: Package, paths: Sequence[Path]) -> Contents:
        """Read debian/copyright and the source files it speaks of."""
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
    """`golang-*-dev` and `librust-*-dev` packages, whose libraries are their sources."""

    languages = frozenset({"go", "rust"})

    def __init__(self, suite: str = "trixie") -> None:
        self._index = Index(f"debian-{suite}-packages", f"{suite}/main/binary-amd64/Packages.xz")

    def artifacts(self, package: Package, folder: Path) -> tuple[Artifact, ...]:
        """Look up the one file of a binary package."""
        path = folder / "metadata" / f"debian-library-{package.name}-{package.version}.json"
        if known := kept(path):
            return known
        paragraph = self._index.find(package, folder)
        filename = paragraph["filename"]
        artifact = Artifact(f"{_MIRROR}/{filename}", posixpath.basename(filename), f"sha256:{paragraph['sha256']}")
        return keep((artifact,), path)

    def contents(self, package: Package, paths: Sequence[Path]) -> Contents:
        """Read the copyright file and the sources; what all of their paths begin with is cut off."""
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
