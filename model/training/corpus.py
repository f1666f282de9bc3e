"""Builds the corpus from its package list: fetches, filters, deduplicates, writes, and records all in a manifest."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from lacuna_model.core.errors import NotPublishedError
from training.packages import CorpusError, Package, Role
from training.registries import DebianLibraries, DebianSources, Npm, PyPI, Registry, read_archive
from training.sifting import Benchmarks, Duplicates, Job, sift_all
from training.stored import DocumentWriter, Manifest, Total

SOURCES: Mapping[str, Registry] = {
    "pypi": PyPI(),
    "npm": Npm(),
    "debian-source": DebianSources(),
    "debian-library": DebianLibraries(),
}
SPLITS = {Role.TRAIN: "train", Role.HELD_OUT: "held_out"}
# Held-out packages come first, so that a copied file is dropped from training and not from the held-out files.
_ORDER = (Role.HELD_OUT, Role.TRAIN)
_CONNECTIONS = 4
MANIFEST = "manifest.json"


def build_packages(
    packages: Sequence[Package],
    out_dir: Path,
    *,
    sources: Mapping[str, Registry] = SOURCES,
    benchmark_files: Sequence[Path] = (),
    workers: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> Manifest:
    """Builds `LANGUAGE/train.jsonl.zst`, `LANGUAGE/held_out.jsonl.zst` and `manifest.json` from packages.

    Downloads are kept in `out_dir/downloads`, so an interrupted build does not fetch them again. ``workers`` processes
    filter the files (0: this process); the corpus does not depend on their number. Raises CorpusError for an unknown
    source or an unpublished benchmark.
    """
    for package in packages:
        if package.source not in sources:
            raise CorpusError(f"{package.name}: unknown source {package.source!r}; known are {', '.join(sources)}")
    downloads = out_dir / "downloads"
    benchmarks = benchmarks_of(packages, downloads, benchmark_files, sources)
    ordered = [package for role in _ORDER for package in packages if package.role is role]
    manifest, duplicates, writers = Manifest(), Duplicates(), dict[str, DocumentWriter]()
    with ExitStack() as stack:
        for sifted in sift_all(_fetch_all(ordered, sources, downloads), benchmarks, workers):
            record, keys = sifted.record, set[str]()
            manifest.packages.append(record)
            for document, sketch in sifted.documents:
                if not duplicates.accepts(sketch):
                    sifted.drop("duplicate")
                    continue
                key = f"{document.language}/{SPLITS[record.role]}"
                if key not in writers:
                    writers[key] = stack.enter_context(DocumentWriter(out_dir / f"{key}.jsonl.zst"))
                writers[key].write(document)
                total = manifest.totals.setdefault(key, Total())
                total.packages += key not in keys
                keys.add(key)
                for sums in (record, total):
                    sums.files += 1
                    sums.bytes += len(document.text.encode())
            advance()
    manifest.write(out_dir / MANIFEST)
    return manifest


def benchmarks_of(
    packages: Sequence[Package], downloads: Path, files: Sequence[Path] = (), sources: Mapping[str, Registry] = SOURCES
) -> Benchmarks:
    """The problems of some files and of the benchmark packages; raises CorpusError where one is not published."""
    found = Benchmarks()
    for path in files:
        found.read(str(path), path.read_bytes())
    for job in _fetch_all([one for one in packages if one.role is Role.BENCHMARK], sources, downloads):
        if not job.paths:
            raise CorpusError(f"{job.package.name} {job.package.version}: this benchmark is not published any more")
        for path in job.paths:
            for name, data in read_archive(path, lambda name: name.endswith((".jsonl", ".jsonl.gz"))):
                found.read(name, data)
    return found


def _fetch_all(packages: Sequence[Package], sources: Mapping[str, Registry], folder: Path) -> Iterator[Job]:
    """Yields a job per package in order, and downloads the next packages meanwhile."""

    def fetch_one(package: Package) -> Job:
        source = sources[package.source]
        try:
            return Job(package, source, source.fetch(package, folder))
        except NotPublishedError:
            return Job(package, source)

    with ThreadPoolExecutor(_CONNECTIONS, "corpus") as pool:
        try:
            yield from pool.map(fetch_one, packages)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
