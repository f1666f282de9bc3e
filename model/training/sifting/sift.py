"""Selects the documents of each package in worker processes: filters its files, and keeps a limited share of tests."""

import hashlib
import multiprocessing
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from training.accepted.languages import is_test, language_of, language_of_text
from training.sifting.benchmarks import Benchmarks
from training.sifting.duplicates import Sketch, sketch
from training.sifting.filters import decode, drop_reason
from training.sources.source import Contents, Source, SourceFile
from training.stored.documents import Document
from training.stored.packages import CorpusError, Package

_TEST_SHARE = 0.15
# Packages per worker that run or wait: few, because their results are held in memory.
_AHEAD = 3
# Sent once to each worker, because they are larger than most packages.
_benchmarks = Benchmarks()


@dataclass(frozen=True, slots=True)
class Job:
    """A package, its source, and the paths of its archives (none if it is no longer published)."""

    package: Package
    source: Source
    paths: tuple[Path, ...] = ()


@dataclass(slots=True)
class Sifted:
    """The selected documents of a package with their sketches, its licence, and counts of the reasons for the rest."""

    licence: str | None = None
    stated_licence: str = ""
    documents: list[tuple[Document, Sketch]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


def sift_all(jobs: Iterable[Job], benchmarks: Benchmarks, workers: int) -> Iterator[tuple[Job, Sifted]]:
    """Yields every package with its selection, in order; ``workers`` processes do the work (0: this process)."""
    if not workers:
        yield from ((job, sift(job, benchmarks)) for job in jobs)
        return
    # Spawned, not forked, because this process downloads in threads.
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawned, initializer=_start, initargs=(benchmarks,)) as pool:
        remaining = iter(jobs)
        running: deque[tuple[Job, Future[Sifted]]] = deque()
        try:
            while True:
                room = _AHEAD * workers - len(running)
                running += ((job, pool.submit(_sift, job)) for job in islice(remaining, room))
                if not running:
                    return
                job, future = running.popleft()
                yield job, future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _start(benchmarks: Benchmarks) -> None:
    global _benchmarks
    _benchmarks = benchmarks


def _sift(job: Job) -> Sifted:
    return sift(job, _benchmarks)


def sift(job: Job, benchmarks: Benchmarks) -> Sifted:
    """Reads a package and filters its files; duplicates across packages are found later."""
    sifted = Sifted()
    if not job.paths:
        sifted.dropped["not published"] += 1
        return sifted
    try:
        contents = job.source.contents(job.package, job.paths)
    except CorpusError as error:
        # The fetch verified the archive, so it was published like this; the build goes on with the other packages.
        sifted.dropped[f"unreadable: {error}"] += 1
        return sifted
    sifted.licence, sifted.stated_licence = contents.licence, contents.stated_licence
    if contents.licence is None:
        sifted.dropped["licence of the package"] += 1
    else:
        _sift_files(job, contents, benchmarks, sifted)
    return sifted


def _sift_files(job: Job, contents: Contents, benchmarks: Benchmarks, sifted: Sifted) -> None:
    """Selects files, then tests up to their share, and counts the reasons for the rest."""
    files = [file for file in contents.files if language_of(file.path) in job.source.languages]
    budget = 0.0
    for file in files:
        if not is_test(file.path) and (document := _accepted(job.package, file, benchmarks, sifted)):
            budget += len(document.text) * _TEST_SHARE / (1 - _TEST_SHARE)
    # Order by a hash: a fair sample of the tests that is the same in every build.
    tests = [file for file in files if is_test(file.path)]
    for file in sorted(tests, key=lambda file: _shuffled(job.package, file)):
        if len(file.data) > budget:
            sifted.dropped["over the share of tests"] += 1
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
        sifted.dropped[str(reason)] += 1
        return None
    language = language_of_text(file.path, text) or language
    document = Document(package.name, package.version, file.licence, file.path, language, text)
    sifted.documents.append((document, sketch(text)))
    return document


def _shuffled(package: Package, file: SourceFile) -> bytes:
    return hashlib.sha256(f"{package.name}/{file.path}".encode()).digest()
