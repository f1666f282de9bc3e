"""The index of a workspace's sources, kept up to date with the disk, and of their chunks for similar code."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event

import numpy as np
from watchfiles import Change, DefaultFilter, watch

from lacuna_model.files import ignore
from lacuna_model.files.opening import Mark, absolute
from lacuna_model.files.scanning import admits, read_source, scan
from lacuna_model.snippets.sources import Chunk, Sources

# The index is held in memory: this is about 9 MB of text.
MAX_CHUNKS = 12_000
# Seconds after which the files on disk are scanned again if the workspace is used, or so many times what a scan takes.
RESCAN_AFTER, RESCAN_TIMES = 30.0, 20
# Seconds between two builds of the index over chunks.
REINDEX_AFTER = 5.0
# Characters of text that are read before they are told.
BATCH = 1 << 18
LEAST = 32  # files that a scan reads, however little time it has
# Seconds between two looks at what the system does not tell: whether the folder is another one, or other rules hold.
LOOK_S = 2.0
_IS_SOURCE = DefaultFilter()
# The texts of files that have changed, None for those that are gone or may not be read.
Changes = dict[str, str | None]


class SimilarCode:
    """An immutable index over chunks by BM25, with Lucene's formula and the usual constants; changes need a new one."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = [chunk for chunk in chunks if chunk.words][:MAX_CHUNKS]
        self._ids: dict[str, int] = {}
        if not self.chunks:
            return
        found = [
            (self._ids.setdefault(word, len(self._ids)), number, index)
            for index, chunk in enumerate(self.chunks)
            for word, number in Counter(chunk.words).items()
        ]
        # A row for every word of every chunk, with the number of times that it is there; those of a word together.
        word, number, self._chunk = np.array(sorted(found, key=lambda one: one[0]), dtype=np.int32).T
        counts = np.bincount(word)
        self._begins = np.concatenate(([0], np.cumsum(counts)))
        rarity = np.log(1 + (len(self.chunks) - counts + 0.5) / (counts + 0.5))
        lengths = np.array([len(chunk.words) for chunk in self.chunks])
        length = (lengths / lengths.mean())[self._chunk]
        self._scores = rarity[word] * number / (1.5 * (0.25 + 0.75 * length) + number)
        # The most that each word can add to a score; divided by their sum, scores are shares of the highest
        # possible score.
        self._most = np.maximum.reduceat(self._scores, self._begins[:-1])

    def nearest(self, query: Sequence[str], count: int) -> list[tuple[Chunk, float]]:
        """The ``count`` chunks most similar to a query of words, best first, each with a score in 0..1."""
        ids = [self._ids[word] for word in sorted(set(query)) if word in self._ids]
        if not ids:
            return []
        scores = np.zeros(len(self.chunks))
        for one in ids:
            rows = slice(self._begins[one], self._begins[one + 1])
            scores[self._chunk[rows]] += self._scores[rows]
        scores /= self._most[ids].sum()
        best = np.argsort(-scores, kind="stable")[:count]
        return [(self.chunks[i], float(scores[i])) for i in best if scores[i] > 0]


class WorkspaceIndex:
    """The sources of a workspace, and the index over their chunks.

    One thread does all the work; readers never wait for it and see the state so far. ``found`` are the files that may
    be read by the last scan, but for those that have changed since; those with the marks in ``kept`` are read last.
    """

    def __init__(self, root: Path) -> None:
        self.root = absolute(root)
        self.sources = Sources()
        self.similar = SimilarCode(())
        self.is_read = False
        self.found: dict[str, Mark] = {}
        self.kept: Mapping[str, Mark] = {}
        self._read: dict[str, Mark] = {}
        self._admitted: dict[str, bool] = {}
        self._is_stale = self._is_used = self._is_asked = False
        self._indexed_at = self._scanned_at = float("-inf")
        self._scan_s = 0.0

    def name(self, path: str | Path) -> str:
        """A file's path relative to the workspace, with forward slashes; its absolute path where it lies outside."""
        whole = absolute(self.root / path)
        return whole.relative_to(self.root).as_posix() if whole.is_relative_to(self.root) else whole.as_posix()

    def admits(self, name: str) -> bool:
        """Whether a file may be read; ignored, secret and outside files may not."""
        known = self._admitted.get(name)
        if known is None:
            known = self._admitted[name] = admits(self.root, self.root / name)
        return known

    def touch(self) -> None:
        """Let the disk be scanned again if the last scan is long ago; called when the workspace is used."""
        self._is_used = True

    def refresh(self, stopped: Callable[[], bool] = lambda: False) -> Iterator[Changes]:
        """Bring everything up to date with the disk, until ``stopped`` returns True, and yield what has changed."""
        yield from self._scan(stopped)
        self._reindex()

    def follow(self, stopped: Event, then: Callable[[], None] = lambda: None) -> Iterator[Changes]:
        """Read the workspace, ``then`` keep up with the disk, and yield what has changed.

        That ends when the folder is another one, or other rules hold.
        """
        rules = ignore.stamps(self.root)
        yield from self.refresh(stopped.is_set)
        if not stopped.is_set():
            then()
        self._is_asked, self._scanned_at = True, float("-inf")  # nobody has told what changed while it was read
        for told in self._told(stopped):
            if rules != ignore.stamps(self.root) or (Change.deleted, str(self.root)) in told:
                return
            if changes := self._looked(told):
                yield changes
            after = max(0.0 if self._is_asked else RESCAN_AFTER, RESCAN_TIMES * self._scan_s)
            if (self._is_asked or self._is_used) and time.monotonic() > self._scanned_at + after:
                yield from self._scan(stopped.is_set)
            if time.monotonic() > self._indexed_at + REINDEX_AFTER:
                self._reindex()

    def _told(self, stopped: Event) -> Iterator[set[tuple[Change, str]]]:
        """What the system tells of changes on disk, with a pause of ``LOOK_S`` at most."""
        try:
            yield from watch(
                self.root,
                watch_filter=None,
                stop_event=stopped,
                rust_timeout=round(LOOK_S * 1e3),
                yield_on_timeout=True,
                raise_interrupt=False,
            )
        except OSError:  # the system watches a limited number of folders, and none that is not there
            while not stopped.wait(LOOK_S):
                yield set()

    def _looked(self, told: Iterable[tuple[Change, str]]) -> Changes:
        """Take in files of which the system has told; what is no file asks for a scan: it may be a whole folder."""
        changes: Changes = {}
        for change, path in told:
            name = self.name(path)
            if ignore.is_rules(path):  # what is left out from now on must not wait
                self._is_asked, self._scanned_at = True, float("-inf")
            elif _IS_SOURCE(change, name):
                if name in self.sources.files or os.path.isfile(path):
                    for marks in (self.found, self._read):
                        marks.pop(name, None)
                    file = self.root / name
                    changes[name] = read_source(self.root, file) if admits(self.root, file) else None
                    self._put(name, changes[name])
                else:
                    self._is_asked = True
        return changes

    def _scan(self, stopped: Callable[[], bool]) -> Iterator[Changes]:
        """Drop the files that are gone or left out; then read every file that is new or has another time or size.

        What was yielded counts as read when the next is asked for: if its taker fails, it is read again. A scan that is
        ``stopped`` ends with a part: so one that never has the time for all gets on with each call.
        """
        self._admitted.clear()
        self._is_used = self._is_asked = False
        began, found, is_whole = time.monotonic(), dict[str, Mark](), True
        for path, mark in scan(self.root):
            if stopped():
                is_whole, found = False, {**self.kept, **self.found, **found}
                break
            found[self.name(path)] = mark
        changes: Changes = dict.fromkeys(self.sources.files.keys() - found.keys())
        for name in changes:
            self._put(name, None)
        self.found, self._read = found, {name: mark for name, mark in self._read.items() if name in found}
        self._scan_s = time.monotonic() - began
        yield changes
        changes, size = {}, 0
        unread = [name for name, mark in found.items() if self._read.get(name) != mark]
        unread.sort(key=lambda name: self.kept.get(name) == found[name])
        for count, name in enumerate(unread):
            if count >= LEAST and stopped():
                is_whole = False
                break
            changes[name] = text = read_source(self.root, self.root / name)
            self._put(name, text)
            size += len(text or "")
            if size >= BATCH:
                yield changes
                self._read |= {name: found[name] for name in changes}
                changes, size = {}, 0
        if is_whole:
            self._scanned_at = time.monotonic()
            if not self.is_read:
                self._reindex()
                self.is_read = True
        yield changes
        self._read |= {name: found[name] for name in changes}

    def _put(self, name: str, text: str | None) -> None:
        """Take in a file, or what became of it."""
        if text is not None:
            self.sources.put(name, text)
        elif name in self.sources.files:
            self.sources.drop(name)
        else:
            return
        self._is_stale = True

    def _reindex(self) -> None:
        if not self._is_stale:
            return
        self._is_stale = False
        chunks: list[Chunk] = []
        for name in sorted(self.sources.files):
            chunks += self.sources.files[name].chunks
            if len(chunks) >= MAX_CHUNKS:
                break
        self.similar = SimilarCode(chunks)
        self._indexed_at = time.monotonic()
