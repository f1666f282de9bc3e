"""Reads JavaScript and TypeScript sources from the tarballs of the npm registry, through npm."""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from training.accepted.languages import language_of
from training.accepted.licences import permissive_licence
from training.sources.archives import read_archive
from training.sources.download import fetch, run
from training.sources.source import Contents, SourceFile
from training.stored.packages import CorpusError, Package

_ABSENT = re.compile(r"^npm (error|ERR!) code (E404|ETARGET)", re.MULTILINE)


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


class Npm:
    """Packages of the npm registry as published; the filters remove compiled and bundled files."""

    languages = frozenset({"javascript", "typescript", "tsx"})

    def fetch(self, package: Package, folder: Path) -> tuple[Path, ...]:
        """Returns the tarball of a version; npm runs none of its scripts."""
        command = ("npm", "pack", "--ignore-scripts", f"{package.name}@{package.version}")
        return fetch(package, folder, lambda files: run(command, files, _ABSENT))

    def before(self, package: Package, folder: Path) -> tuple[Package, tuple[Path, ...]]:
        """Returns the newest release that is older, and its tarball."""
        paths = self.fetch(replace(package, version=f"<{package.version}"), folder)
        version = paths[0].stem.removeprefix(package.name.removeprefix("@").replace("/", "-") + "-")
        return replace(package, version=version), paths

    def contents(self, package: Package, paths: Sequence[Path]) -> Contents:
        """Reads ``package.json`` and the source files; removes the top folder from their paths."""
        stated = ""
        files: dict[str, bytes] = {}
        for path in paths:
            for name, data in read_archive(path, self._wanted):
                inner = name.partition("/")[2]
                if inner != "package.json":
                    files[inner] = data
                    continue
                try:
                    stated = msgspec.json.decode(data, type=_PackageJson).stated()
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise CorpusError(f"{path}: package.json is not valid: {error}") from error
        licence = permissive_licence(stated)
        return Contents(licence, stated or "none", [SourceFile(name, files[name], licence) for name in sorted(files)])

    def _wanted(self, name: str) -> bool:
        return name.partition("/")[2] == "package.json" or language_of(name) in self.languages
