"""Builds the corpus from its package list: fetches, filters, deduplicates, writes, and records all in a manifest.

Worker processes select the documents of each package: without copies and benchmark problems, with few tests.
"""

import gzip
import hashlib
import json
import multiprocessing
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from datasketch import LeanMinHash, MinHash, MinHashLSH  # type: ignore[import-untyped]  # ships no type information

from lacuna_model.core.errors import NotPublishedError
from lacuna_model.hub import atomic
from training.files import decode, drop_reason, is_test, language_of, language_of_text
from training.packages import CorpusError, Package, Role
from training.registries import DebianLibraries, DebianSources, Npm, PyPI, Registry, SourceFile, read_archive
from training.stored import Document, DocumentWriter, Manifest, PackageRecord, Total

SOURCES: Mapping[str, Registry] = {
    "pypi": PyPI(),
    "npm": Npm(),
    "debian-source": DebianSources(),
    "debian-library": DebianLibraries(),
}
SPLITS = {Role.TRAIN: "train", Role.HELD_OUT: "held_out"}
# Held-out packages come first, so that a copied file is dropped from training and not from the held-out files.
_ROLES = (Role.HELD_OUT, Role.TRAIN)
_CONNECTIONS = 4
MANIFEST = "manifest.json"
_WORD = re.compile(r"\w+")
_NGRAM = 10
# Many unrelated files share ten consecutive numbers or one-letter names, but not ten real words.
_MIN_WORDS = 6
_MENTION = re.compile(r"human[-_ ]?eval(?!uat)|\bmbpp\b", re.IGNORECASE)
# MBPP's wording. No registry carries its problems, so a file with several such phrases counts as a copy of them.
_ORDER = re.compile(r"\bwrite a (?:python )?function (?:to|that|which)\b", re.IGNORECASE)
_MAX_ORDERS = 2
# Problems are plain functions; methods with the same name are not matched.
_DEFINITION = re.compile(r"^def\s+(\w+)", re.MULTILINE)
_PROBLEM_FIELDS = ("prompt", "canonical_solution", "suffix", "text", "code")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_SHINGLE = 5
_PERMUTATIONS = 64
_EMPTY = MinHash(num_perm=_PERMUTATIONS, hashfunc=zlib.crc32)
_TEST_SHARE = 0.15
# Packages per worker that run or wait: few, because their results are held in memory.
_AHEAD = 3


class Benchmarks:
    """The n-grams and function names of the benchmark problems."""

    def __init__(self) -> None:
        self._ngrams: set[tuple[str, ...]] = set()
        self._entry_points: set[str] = set()

    def add(self, problem: Mapping[str, object]) -> None:
        """Adds a problem: its prompt and solution in the form of HumanEval, MBPP or HumanEval-Infilling."""
        texts = [problem.get(field) for field in _PROBLEM_FIELDS]
        ngrams = _ngrams("".join(text for text in texts if isinstance(text, str)))
        self._ngrams.update(ngram for ngram in ngrams if _telling(ngram))
        name = problem.get("entry_point")
        if isinstance(name, str):
            self._entry_points.add(name)

    def read(self, name: str, data: bytes) -> None:
        """Adds every problem of a `.jsonl` or `.jsonl.gz` file; raises CorpusError if it cannot be read."""
        try:
            for line in (gzip.decompress(data) if name.endswith(".gz") else data).splitlines():
                if line.strip():
                    self.add(json.loads(line))
        except (OSError, EOFError, ValueError) as error:
            raise CorpusError(f"{name}: cannot read the benchmark problems: {error}") from error

    def contaminates(self, text: str) -> bool:
        """Whether a file quotes a problem, names a benchmark, or defines several of its functions."""
        if _MENTION.search(text) or len(_ORDER.findall(text)) > _MAX_ORDERS:
            return True
        if len(self._entry_points.intersection(_DEFINITION.findall(text))) > 1:
            return True
        return not self._ngrams.isdisjoint(_ngrams(text))


def _ngrams(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return zip(*(words[i:] for i in range(_NGRAM)), strict=False)


def _telling(ngram: tuple[str, ...]) -> bool:
    return len({word for word in ngram if len(word) > 1 and not word[0].isdigit()}) >= _MIN_WORDS


class Duplicates:
    """Stores the sketches of accepted documents and recognises copies of them."""

    def __init__(self, threshold: float = 0.8) -> None:
        self._near = MinHashLSH(threshold=threshold, num_perm=_PERMUTATIONS)
        self._threshold = threshold
        self._accepted: list[LeanMinHash] = []

    def accepts(self, text: LeanMinHash) -> bool:
        """Accepts a new text, unless it repeats an accepted one."""
        # The index returns more candidates than needed; the similarity of the sketches decides.
        near = (self._accepted[key] for key in self._near.query(text))
        if any(other.jaccard(text) >= self._threshold for other in near):
            return False
        self._near.insert(len(self._accepted), text, check_duplication=False)
        self._accepted.append(text)
        return True


def sketch(text: str) -> LeanMinHash:
    """Returns a MinHash of a text's shingles, by which copies are known; white space does not change it."""
    words = _TOKEN.findall(text)
    # crc32 is three times as fast as the default sha1, and the permutations mix it well enough.
    shingles = _EMPTY.copy()
    last = max(1, len(words) - _SHINGLE + 1)
    shingles.update_batch({" ".join(words[i : i + _SHINGLE]).encode() for i in range(last)})
    return LeanMinHash(shingles)


# Sent once to each worker, because they are larger than most packages.
_benchmarks = Benchmarks()


@dataclass(frozen=True, slots=True)
class Job:
    """A package, its source, and the paths of its archives (none if it is no longer published)."""

    package: Package
    source: Registry
    paths: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Sifted:
    """The selected documents of a package with their sketches, and what is recorded of it."""

    record: PackageRecord
    documents: list[tuple[Document, LeanMinHash]] = field(default_factory=list)

    def drop(self, reason: str) -> None:
        """Counts a file that is left out."""
        self.record.dropped[reason] = self.record.dropped.get(reason, 0) + 1


def sift_all(jobs: Iterable[Job], benchmarks: Benchmarks, workers: int) -> Iterator[Sifted]:
    """Yields what becomes of every package, in order; ``workers`` processes do the work (0: this process)."""
    if not workers:
        yield from (sift(job, benchmarks) for job in jobs)
        return
    # Spawned, not forked, because this process downloads in threads.
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawned, initializer=_start, initargs=(benchmarks,)) as pool:
        waiting: deque[Future[Sifted]] = deque()
        try:
            for job in jobs:
                waiting.append(pool.submit(_sift, job))
                if len(waiting) == _AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _start(benchmarks: Benchmarks) -> None:
    global _benchmarks
    _benchmarks = benchmarks


def _sift(job: Job) -> Sifted:
    return sift(job, _benchmarks)


def sift(job: Job, benchmarks: Benchmarks) -> Sifted:
    """Reads a package and filters its files; duplicates across packages are found later."""
    package = job.package
    record = PackageRecord(source=package.source, name=package.name, version=package.version, role=package.role)
    sifted = Sifted(record)
    if not job.paths:
        sifted.drop("not published")
        return sifted
    record.downloads = {path.name: f"sha256:{atomic.sha256(path)}" for path in job.paths}
    try:
        found, files = job.source.contents(job.paths)
    except CorpusError as error:
        # The fetch verified the archive, so it was published like this; the build goes on with the other packages.
        sifted.drop(f"unreadable: {error}")
        return sifted
    record.licence, record.stated_licence = found.package, found.stated
    if found.package is None:
        sifted.drop("licence of the package")
    else:
        _sift_files(job, files, benchmarks, sifted)
    return sifted


def _sift_files(job: Job, files: Sequence[SourceFile], benchmarks: Benchmarks, sifted: Sifted) -> None:
    """Selects files, then tests up to their share, and counts the reasons for the rest."""
    files = [file for file in files if language_of(file.path) in job.source.languages]
    budget = 0.0
    for file in files:
        if not is_test(file.path) and (document := _accepted(job.package, file, benchmarks, sifted)):
            budget += len(document.text) * _TEST_SHARE / (1 - _TEST_SHARE)
    # Order by a hash: a fair sample of the tests that is the same in every build.
    tests = [file for file in files if is_test(file.path)]
    for file in sorted(tests, key=lambda file: _shuffled(job.package, file)):
        if len(file.data) > budget:
            sifted.drop("over the share of tests")
        elif document := _accepted(job.package, file, benchmarks, sifted):
            budget -= len(document.text)


def _accepted(package: Package, file: SourceFile, benchmarks: Benchmarks, sifted: Sifted) -> Document | None:
    language = language_of(file.path) or ""
    reason = drop_reason(file.path, file.data, language)
    text = decode(file.data)
    if reason is None and file.licence is None:
        reason = "licence of the file"
    if reason is None and text is not None and benchmarks.contaminates(text):
        reason = "benchmark problem"
    if reason is not None or file.licence is None or text is None:
        sifted.drop(str(reason))
        return None
    language = language_of_text(file.path, text) or language
    document = Document(package.name, package.version, file.licence, file.path, language, text)
    sifted.documents.append((document, sketch(text)))
    return document


def _shuffled(package: Package, file: SourceFile) -> bytes:
    return hashlib.sha256(f"{package.name}/{file.path}".encode()).digest()


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
    ordered = [package for role in _ROLES for package in packages if package.role is role]
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
