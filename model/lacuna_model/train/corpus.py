"""Builds the training corpus from its package list: fetch, filter, deduplicate, write, and keep a manifest."""

import gzip
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from lacuna_model.train.archives import read_archive
from lacuna_model.train.benchmarks import Benchmarks
from lacuna_model.train.debian import DebianLibraries, DebianSources
from lacuna_model.train.documents import Document, DocumentWriter
from lacuna_model.train.download import Artifact, NotPublishedError, fetch
from lacuna_model.train.duplicates import Duplicates
from lacuna_model.train.filters import decode, drop_reason
from lacuna_model.train.languages import is_test, language_of, language_of_text
from lacuna_model.train.manifest import Manifest, PackageRecord, Total
from lacuna_model.train.npm import Npm
from lacuna_model.train.packages import CorpusError, Package, Role, read_packages
from lacuna_model.train.pypi import PyPI
from lacuna_model.train.sources import Contents, Source, SourceFile

__all__ = ["SOURCES", "CorpusError", "Progress", "Tokenizer", "build_corpus", "build_packages"]

Progress = Callable[[int, int, str], None]
SOURCES: Mapping[str, Source] = {
    "pypi": PyPI(),
    "npm": Npm(),
    "debian-source": DebianSources(),
    "debian-library": DebianLibraries(),
}
_SPLITS = {Role.TRAIN: "train", Role.HELD_OUT: "held_out"}
# Held-out packages come first, so that a copy of a held-out file is dropped from training, not the other way round.
_ORDER = (Role.HELD_OUT, Role.TRAIN)
_TEST_SHARE = 0.15
_CONNECTIONS = 4


class Tokenizer(Protocol):
    """What counts tokens for the manifest."""

    @property
    def fingerprint(self) -> str:
        """Hash of vocabulary and merges."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text."""
        ...


Fetched = tuple[Package, tuple[Artifact, ...], tuple[Path, ...]]


def build_corpus(
    packages_file: Path,
    out_dir: Path,
    progress: Progress | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    benchmark_files: Sequence[Path] = (),
) -> Manifest:
    """Build `LANGUAGE/train.jsonl.zst`, `LANGUAGE/held_out.jsonl.zst` and `manifest.json` from a package list.

    Downloads stay in `out_dir/downloads` and are not fetched twice, so an interrupted build goes on where it was.
    """
    packages = read_packages(packages_file)
    return build_packages(packages, out_dir, progress, tokenizer=tokenizer, benchmark_files=benchmark_files)


def build_packages(
    packages: Sequence[Package],
    out_dir: Path,
    progress: Progress | None = None,
    *,
    sources: Mapping[str, Source] = SOURCES,
    tokenizer: Tokenizer | None = None,
    benchmark_files: Sequence[Path] = (),
) -> Manifest:
    """Build a corpus from packages of the given sources."""
    for package in packages:
        if package.source not in sources:
            raise CorpusError(f"{package.name}: unknown source {package.source!r}; known are {', '.join(sources)}")
    downloads = out_dir / "downloads"
    benchmarks = Benchmarks()
    for path in benchmark_files:
        benchmarks.read(path)
    for package, _, paths in _fetch_all([p for p in packages if p.role is Role.BENCHMARK], sources, downloads):
        if not paths:
            raise CorpusError(f"{package.name} {package.version}: this benchmark is not published any more")
        _read_benchmark(benchmarks, paths)
    ordered = [package for role in _ORDER for package in packages if package.role is role]
    manifest = Manifest(tokenizer=tokenizer.fingerprint if tokenizer else None)
    with ExitStack() as stack:
        build = _Build(out_dir, stack, benchmarks, tokenizer, manifest)
        for done, fetched in enumerate(_fetch_all(ordered, sources, downloads)):
            if progress:
                progress(done, len(ordered), f"{fetched[0].name} {fetched[0].version}")
            build.add(fetched, sources[fetched[0].source])
    manifest.write(out_dir / "manifest.json")
    if progress:
        progress(len(ordered), len(ordered), "done")
    return manifest


class _Build:
    """One run over all packages: what has been written and seen so far."""

    def __init__(
        self, out_dir: Path, stack: ExitStack, benchmarks: Benchmarks, tokenizer: Tokenizer | None, manifest: Manifest
    ) -> None:
        self._out_dir = out_dir
        self._stack = stack
        self._benchmarks = benchmarks
        self._tokenizer = tokenizer
        self._manifest = manifest
        self._duplicates = Duplicates()
        self._writers: dict[str, DocumentWriter] = {}
        self._counted: set[tuple[str, str]] = set()

    def add(self, fetched: Fetched, source: Source) -> None:
        """Filter one package, write what is left and record it."""
        package, artifacts, paths = fetched
        record = PackageRecord(source=package.source, name=package.name, version=package.version, role=package.role)
        self._manifest.packages.append(record)
        if not artifacts:
            record.dropped = {"not published": 1}
            return
        record.downloads = {artifact.filename: artifact.digest for artifact in artifacts}
        try:
            contents = source.contents(package, paths)
        except CorpusError as error:
            # The digest was right, so it was published like this: no reason to give up all the others.
            record.dropped = {f"unreadable: {error}": 1}
            return
        record.licence, record.stated_licence = contents.licence, contents.stated_licence
        if contents.licence is None:
            record.dropped = {"licence of the package": 1}
            return
        record.dropped = self._sift(package, contents, source, record)

    def _sift(self, package: Package, contents: Contents, source: Source, record: PackageRecord) -> dict[str, int]:
        """Write what is worth it, tests up to their share, and count the reasons for the rest."""
        dropped: Counter[str] = Counter()
        files = [file for file in contents.files if language_of(file.path) in source.languages]
        tests = [file for file in files if is_test(file.path)]
        budget = 0.0
        for file in files:
            if not is_test(file.path) and (document := self._accepted(package, file, dropped)):
                self._write(document, record)
                budget += len(document.text) * _TEST_SHARE / (1 - _TEST_SHARE)
        # In the order of a hash: a fair sample of the tests that does not change from build to build.
        for file in sorted(tests, key=lambda file: _shuffled(package, file)):
            if len(file.data) > budget:
                dropped["over the share of tests"] += 1
            elif document := self._accepted(package, file, dropped):
                self._write(document, record)
                budget -= len(document.text)
        return dict(dropped)

    def _accepted(self, package: Package, file: SourceFile, dropped: Counter[str]) -> Document | None:
        language = language_of(file.path) or ""
        reason = drop_reason(file.path, file.data, language)
        text = decode(file.data)
        if reason is None and file.licence is None:
            reason = "licence of the file"
        if reason is None and text is not None:
            reason = self._seen_reason(text)
        if reason is not None or file.licence is None or text is None:
            dropped[str(reason)] += 1
            return None
        language = language_of_text(file.path, text) or language
        return Document(package.name, package.version, file.licence, file.path, language, text)

    def _seen_reason(self, text: str) -> str | None:
        return "benchmark problem" if self._benchmarks.contaminates(text) else self._duplicates.reason(text)

    def _write(self, document: Document, record: PackageRecord) -> None:
        key = f"{document.language}/{_SPLITS[record.role]}"
        if key not in self._writers:
            writer = DocumentWriter(self._out_dir / f"{key}.jsonl.zst")
            self._writers[key] = self._stack.enter_context(writer)
        self._writers[key].write(document)
        total = self._manifest.totals.setdefault(key, Total())
        size = len(document.text.encode("utf-8"))
        total.packages += (key, record.name) not in self._counted
        self._counted.add((key, record.name))
        for sums in (record, total):
            sums.files += 1
            sums.bytes += size
        if self._tokenizer is not None:
            tokens = len(self._tokenizer.encode(document.text))
            record.tokens = (record.tokens or 0) + tokens
            total.tokens = (total.tokens or 0) + tokens


def _shuffled(package: Package, file: SourceFile) -> bytes:
    return hashlib.sha256(f"{package.name}/{file.path}".encode()).digest()


def _fetch_all(packages: Sequence[Package], sources: Mapping[str, Source], folder: Path) -> Iterator[Fetched]:
    """Yield packages in order while the next ones are already being downloaded."""

    def fetch_one(package: Package) -> Fetched:
        try:
            artifacts = sources[package.source].artifacts(package, folder)
            return package, artifacts, tuple(fetch(artifact, folder) for artifact in artifacts)
        except NotPublishedError:
            return package, (), ()

    with ThreadPoolExecutor(_CONNECTIONS, "corpus") as pool:
        try:
            yield from pool.map(fetch_one, packages)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _read_benchmark(benchmarks: Benchmarks, paths: Sequence[Path]) -> None:
    for path in paths:
        for name, data in read_archive(path, lambda name: name.endswith((".jsonl", ".jsonl.gz"))):
            benchmarks.add_lines(gzip.decompress(data) if name.endswith(".gz") else data)
