"""Builds the training corpus from its package list: fetch, filter, deduplicate, write, and keep a manifest."""

import gzip
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from lacuna_model.train.sources import Contents, Source

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
        dropped: Counter[str] = Counter()
        documents = list(self._accepted(package, contents, source, dropped))
        for document in limit_tests(documents, dropped):
            self._write(document, record)
        record.dropped = dict(dropped)

    def _accepted(
        self, package: Package, contents: Contents, source: Source, dropped: Counter[str]
    ) -> Iterator[Document]:
        for file in contents.files:
            language = language_of(file.path)
            if language is None or language not in source.languages:
                continue
            reason = drop_reason(file.path, file.data, language)
            text = decode(file.data)
            if reason is None and file.licence is None:
                reason = "licence of the file"
            if reason is None and text is not None:
                reason = self._seen_reason(text)
            if reason is not None or file.licence is None or text is None:
                dropped[str(reason)] += 1
                continue
            language = language_of_text(file.path, text) or language
            yield Document(package.name, package.version, file.licence, file.path, language, text)

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
        total.packages += record.files == 0
        for sums in (record, total):
            sums.files += 1
            sums.bytes += size
        if self._tokenizer is not None:
            tokens = len(self._tokenizer.encode(document.text))
            record.tokens = (record.tokens or 0) + tokens
            total.tokens = (total.tokens or 0) + tokens


def limit_tests(documents: Iterable[Document], dropped: Counter[str]) -> Iterator[Document]:
    """Yield everything but those tests that would make up more than their share of a package."""
    documents = list(documents)
    budget = sum(len(d.text) for d in documents if not is_test(d.path)) * _TEST_SHARE / (1 - _TEST_SHARE)
    kept: set[str] = set()
    # In the order of a hash: a fair sample of the tests that does not change from build to build.
    for document in sorted((d for d in documents if is_test(d.path)), key=_shuffled):
        if len(document.text) <= budget:
            budget -= len(document.text)
            kept.add(document.path)
        else:
            dropped["over the share of tests"] += 1
    yield from (d for d in documents if not is_test(d.path) or d.path in kept)


def _shuffled(document: Document) -> bytes:
    return hashlib.sha256(f"{document.package}/{document.path}".encode()).digest()


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
