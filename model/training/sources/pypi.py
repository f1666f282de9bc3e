"""Reads Python sources from the wheels of PyPI; builds and runs nothing."""

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace
from packaging.metadata import RawMetadata, parse_email
from packaging.utils import parse_wheel_filename

from lacuna_model.hub.sources import pip_download
from training.accepted.languages import language_of
from training.accepted.licences import permissive_licence
from training.sources.archives import read_archive
from training.sources.download import fetch
from training.sources.source import Contents, SourceFile
from training.stored.packages import Package

_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
_LICENCE_FILE = re.compile(r"[^/]+(/licenses)?/(LICEN[CS]E|COPYING)(\.\w+)?", re.IGNORECASE)


class PyPI:
    """The Python package index, through pip.

    Only wheels are used: to fetch a source distribution, pip runs its build script.
    """

    languages = frozenset({"python"})

    def fetch(self, package: Package, folder: Path) -> tuple[Path, ...]:
        """Returns the package's wheel."""
        wanted = package.version if package.version.startswith("<") else f"=={package.version}"
        return fetch(package, folder, lambda files: pip_download(f"{package.name}{wanted}", files))

    def before(self, package: Package, folder: Path) -> tuple[Package, tuple[Path, ...]]:
        """Returns the newest release that is older, and its wheel."""
        paths = self.fetch(replace(package, version=f"<{package.version}"), folder)
        _, version, _, _ = parse_wheel_filename(paths[0].name)
        return replace(package, version=str(version)), paths

    def contents(self, package: Package, paths: Sequence[Path]) -> Contents:
        """Reads the core metadata and the Python files."""
        metadata: RawMetadata = {}
        licence_text = ""
        files: dict[str, bytes] = {}
        for path in paths:
            for name, data in read_archive(path, _wanted):
                if _METADATA.fullmatch(name):
                    metadata, _ = parse_email(data)
                elif _LICENCE_FILE.fullmatch(name):
                    licence_text = data.decode("utf-8", errors="replace")
                else:
                    files[name] = data
        licence, stated = _licence(metadata, licence_text)
        return Contents(licence, stated, [SourceFile(name, files[name], licence) for name in sorted(files)])


def _wanted(name: str) -> bool:
    return language_of(name) == "python" or any(p.fullmatch(name) for p in (_METADATA, _LICENCE_FILE))


def _licence(metadata: RawMetadata, licence_text: str) -> tuple[str | None, str]:
    """Returns the permissive licence or None, and the licence as the package states it."""
    expression, text = metadata.get("license_expression"), metadata.get("license")
    classifiers = [name for name in metadata.get("classifiers", ()) if name.startswith("License ::")]
    stated = expression or ", ".join(classifiers) or text
    if stated is None:
        return permissive_licence(None, (), licence_text), "only a licence file"
    return permissive_licence(expression, classifiers, text), " ".join(stated.split())[:100]
