"""The registries: PyPI through pip, npm through npm, and Debian through apt."""

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
from packaging.metadata import RawMetadata, parse_email
from packaging.utils import parse_wheel_filename

from lacuna_model.hub.download import pip_download
from training.archives import Licences, Registry, Releases, fetch
from training.licences import FileLicences, permissive_licence
from training.packages import CorpusError, Package


class PyPI(Releases):
    """The Python package index, through pip.

    Only wheels are used: to fetch a source distribution, pip runs its build script.
    """

    languages = frozenset({"python"})
    states = re.compile(r"[^/]+\.dist-info/METADATA|(?i:[^/]+(/licenses)?/(LICEN[CS]E|COPYING)(\.\w+)?)")

    def fetch(self, package: Package, folder: Path) -> tuple[Path, ...]:
        """Returns the package's wheel."""
        wanted = package.version if package.version.startswith("<") else f"=={package.version}"
        return fetch(package, folder, lambda files: pip_download(f"{package.name}{wanted}", files))

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
        if said is None:
            licence, said = permissive_licence(None, (), text), "only a licence file"
        else:
            licence, said = permissive_licence(expression, classifiers, free), " ".join(said.split())[:100]
        return Licences(licence, said, lambda name: licence)


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


class Npm(Releases):
    """Packages of the npm registry as published; the filters remove compiled and bundled files."""

    languages = frozenset({"javascript", "typescript", "tsx"})
    states = re.compile(r"[^/]*/package\.json")
    absent = re.compile(r"^npm (error|ERR!) code (E404|ETARGET)", re.MULTILINE)

    def command(self, package: Package) -> tuple[str, ...]:
        """Fetches the tarball of a version; npm runs none of its scripts."""
        return "npm", "pack", "--ignore-scripts", f"{package.name}@{package.version}"

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
    states = re.compile(r"debian/copyright")
    _tarball = re.compile(r".*\.(orig(-(?P<component>[\w-]+))?|debian)\.tar\.(gz|xz|bz2)")

    def command(self, package: Package) -> tuple[str, ...]:
        """Fetches a source package; the machine's apt needs source entries (``deb-src``)."""
        return "apt-get", "source", "--download-only", "--only-source", f"{package.name}={package.version}"

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
    states = re.compile(r"(\./)?usr/share/doc/[^/]+/copyright")

    def command(self, package: Package) -> tuple[str, ...]:
        """Fetches the only file of a binary package."""
        return "apt-get", "download", f"{package.name}={package.version}"

    def without_root(self, files: dict[str, bytes]) -> dict[str, bytes]:
        """Removes the prefix that all paths share."""
        root = posixpath.commonpath(posixpath.dirname(name) for name in files) if files else ""
        return {posixpath.relpath(name, root or "."): data for name, data in files.items()}
