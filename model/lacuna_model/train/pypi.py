"""Python sources from the source distributions and wheels of PyPI; they are read, never built or run."""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urljoin

import msgspec
from packaging.metadata import RawMetadata, parse_email

from lacuna_model.train.archives import read_archive
from lacuna_model.train.download import Artifact, NotPublishedError, fetch_document
from lacuna_model.train.languages import language_of
from lacuna_model.train.licences import permissive_licence
from lacuna_model.train.packages import CorpusError, Package
from lacuna_model.train.sources import Contents, SourceFile, keep, kept

_MAX_SDIST = 30_000_000
_METADATA = re.compile(r"[^/]+/PKG-INFO|[^/]+\.dist-info/METADATA")
_LICENCE_FILE = re.compile(r"[^/]+(/licenses)?/(LICEN[CS]E|COPYING)(\.\w+)?", re.IGNORECASE)


class _File(msgspec.Struct):
    filename: str
    url: str
    size: int
    packagetype: str
    digests: dict[str, str]


class _Project(msgspec.Struct):
    releases: dict[str, list[_File]]


class PyPI:
    """The Python package index."""

    languages = frozenset({"python"})

    def artifacts(self, package: Package, folder: Path) -> tuple[Artifact, ...]:
        """Choose the source distribution, or else the smallest wheel."""
        path = folder / "metadata" / f"pypi-{package.name}-{package.version}.json"
        if known := kept(path):
            return known
        url = f"https://pypi.org/pypi/{package.name}/json"
        try:
            project = msgspec.json.decode(fetch_document(url, folder), type=_Project)
        except msgspec.DecodeError as error:
            raise CorpusError(f"{url}: not the description of a PyPI package: {error}") from error
        file = _chosen(project.releases.get(package.version, []))
        if file is None:
            raise NotPublishedError(f"{package.name} {package.version}: no source distribution and no wheel")
        artifact = Artifact(urljoin(url, file.url), file.filename, f"sha256:{file.digests['sha256']}")
        return keep((artifact,), path)

    def contents(self, package: Package, paths: Sequence[Path]) -> Contents:
        """Read the core metadata and the Python files."""
        metadata: RawMetadata = {}
        licence_text = ""
        files: dict[str, bytes] = {}
        for path in paths:
            # A source distribution holds everything in one leading folder, a wheel does not.
            leading = path.suffix != ".whl"
            for name, data in read_archive(path, _wanted):
                if _METADATA.fullmatch(name):
                    metadata, _ = parse_email(data)
                elif _LICENCE_FILE.fullmatch(name):
                    licence_text = data.decode("utf-8", errors="replace")
                else:
                    files[name.partition("/")[2] if leading else name] = data
        licence, stated = _licence(metadata, licence_text)
        return Contents(licence, stated, [SourceFile(name, files[name], licence) for name in sorted(files)])


def _wanted(name: str) -> bool:
    return language_of(name) == "python" or any(p.fullmatch(name) for p in (_METADATA, _LICENCE_FILE))


def _licence(metadata: RawMetadata, licence_text: str) -> tuple[str | None, str]:
    """Return the permissive licence, if it is one, and what the package says."""
    expression, text = metadata.get("license_expression"), metadata.get("license")
    classifiers = [name for name in metadata.get("classifiers", ()) if name.startswith("License ::")]
    stated = expression or ", ".join(classifiers) or text
    if stated is None:
        return permissive_licence(None, (), licence_text), "only a licence file"
    return permissive_licence(expression, classifiers, text), " ".join(stated.split())[:100]


def _chosen(files: Sequence[_File]) -> _File | None:
    sdists = [f for f in files if f.packagetype == "sdist" and not f.filename.endswith(".Z")]
    wheels = sorted((f for f in files if f.packagetype == "bdist_wheel"), key=lambda f: (f.size, f.filename))
    pure = [f for f in wheels if f.filename.endswith("-none-any.whl")]
    small = [f for f in sdists if f.size <= _MAX_SDIST]
    return next(iter((*small, *pure, *wheels, *sdists)), None)
