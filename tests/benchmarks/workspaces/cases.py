"""Cuts gaps into files of pinned packages; each file is treated as new and absent from its package."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path

import msgspec
from tests.benchmarks.held_out.cases import Case, sample_cases
from tests.benchmarks.tasks.runner import parses

from lacuna_model.core.errors import LacunaError
from lacuna_model.hub import checksum, models
from training.sources.pypi import PyPI
from training.stored.documents import Document
from training.stored.packages import Package, Role

PACKAGES = "packages.toml"
# Tests, documentation and examples get no gaps, but remain part of the workspace.
_BESIDE = re.compile(r"(^|/)(tests?|docs?|examples?|benchmarks?)/|(^|/)(test_[^/]*|conftest|setup)\.py$")


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A release and the sha256 of its wheel."""

    version: str
    sha256: str


class Held(msgspec.Struct, frozen=True):
    """A package's Python files by path, and the documents that may get gaps."""

    name: str
    files: Mapping[str, str]
    documents: tuple[Document, ...]


def read_pins() -> Mapping[str, Pin]:
    """Returns the pinned packages by name."""
    text = resources.files(__package__).joinpath(PACKAGES).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["pypi"], type=dict[str, Pin])


def fetch_packages(folder: Path | None = None) -> Iterator[Held]:
    """Yields every pinned package; downloads missing ones to ``folder`` (default: in the user's cache).

    Raises DownloadError, and LacunaError if the index offers another file than the pinned one.
    """
    folder = folder or models.cache_dir() / "evaluate" / "packages"
    for name, pin in read_pins().items():
        registry = PyPI()
        package = Package("pypi", name, pin.version, Role.HELD_OUT)
        paths = registry.fetch(package, folder)
        if [checksum.sha256(path) for path in paths] != [pin.sha256]:
            raise LacunaError(f"{name} {pin.version}: PyPI offers another file than the pinned {pin.sha256[:12]}")
        contents = registry.contents(package, paths)
        texts = {file.path: file.data.decode("utf-8", errors="replace") for file in contents.files}
        yield held(name, {path: text for path, text in texts.items() if parses(text)}, pin.version)


def held(name: str, files: Mapping[str, str], version: str = "") -> Held:
    """Returns a package with these files."""
    documents = tuple(
        Document(package=name, version=version, licence="", path=path, language="python", text=text)
        for path, text in files.items()
        if not _BESIDE.search(path)
    )
    return Held(name, files, documents)


def draw_cases(packages: Sequence[Held], num_cases: int, seed: int) -> list[Case]:
    """Returns ``num_cases`` cases, packages and shapes in turn; the same arguments give the same cases."""
    per_package = -(-num_cases // len(packages))
    drawn = [sample_cases(package.documents, per_package, seed) for package in packages]
    return [case for round_ in zip(*drawn, strict=True) for case in round_][:num_cases]
