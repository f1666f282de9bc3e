"""The index of a workspace's sources, read in the background, and of their chunks for similar code."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from lacuna_model.core.background import Background
from lacuna_model.files import ignore
from lacuna_model.files.opening import absolute
from lacuna_model.files.scanning import admits, read_source, scan
from lacuna_model.snippets.sources import Chunk, Sources

# The index is held in memory: this is about 9 MB of text.
MAX_CHUNKS = 12_000
# Seconds after which the files on disk are scanned again, or so many times what the scan took.
RESCAN_AFTER, RESCAN_TIMES = 30.0, 20
# Seconds between two builds of the index over chunks.
REINDEX_AFTER = 5.0
# After so many files, a scan takes in changes and yields to other threads.
_BREATH = 20


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

    In the background one thread does all the work; readers never wait for it and see the state so far.
    """

    def __init__(self, root: Path) -> None:
        self.root = absolute(root)
        self.sources = Sources()
        self.similar = SimilarCode(())
        self._stamps: dict[str, tuple[int, int]] = {}
        self._changed: set[str] = set()
        self._taken: set[str] = set()  # what has changed since the last scan began
        self._admitted: dict[str, bool] = {}
        self._stale = False
        self._scanned_at = self._indexed_at = self._asked_at = self._scan_at = float("-inf")
        self._rules = ignore.stamps(self.root)
        self._background = Background("lacuna-snippets", self._work)

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

    def changed(self, name: str) -> None:
        """Take in a file that has changed on disk or was removed."""
        self._changed.add(name)
        self._background.wake.set()

    @property
    def is_read(self) -> bool:
        """Whether all files were read once and the index over their chunks was built, or that failed."""
        if self._background.has_failed:
            return True
        return self._scanned_at > float("-inf") and (self._indexed_at > float("-inf") or not self._stale)

    def touch(self) -> None:
        """Scan the disk again if the last scan is long ago, or other rules hold; called when the workspace is used."""
        if self._rules != ignore.stamps(self.root) or time.monotonic() > self._scan_at:
            self._background.wake.set()

    def look_again(self) -> None:
        """Scan the disk again: files may be gone, or left out by other rules, or new."""
        self._asked_at = time.monotonic()
        self._background.wake.set()

    def refresh(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Bring everything up to date until ``stopped`` returns True."""
        self._scan(stopped)
        self._take_changes()
        self._reindex()

    def start(self) -> None:
        """Start the background work."""
        self._background.start()

    def stop(self) -> None:
        """Stop the background work."""
        self._background.stop()

    def _work(self) -> None:
        """Take in what has changed, and wait until there is more to do."""
        if self._rules != (rules := ignore.stamps(self.root)):
            self._rules = rules
            self._asked_at = time.monotonic()
        if self._asked_at >= self._scanned_at or time.monotonic() > self._scan_at:
            self._scan(self._background.stopped.is_set)
        self._take_changes()
        due = self._indexed_at + REINDEX_AFTER - time.monotonic()
        if self._stale and due <= 0:
            self._reindex()
        self._background.wake.wait(max(0.0, due) if self._stale else None)
        self._background.wake.clear()

    def _scan(self, stopped: Callable[[], bool]) -> None:
        """Drop the files that are gone or left out; then read every file that is new or has another time or size."""
        self._admitted.clear()
        self._taken.clear()
        began, found = time.monotonic(), {}
        for number, file in enumerate(scan(self.root)):
            if stopped():
                return
            found[self.name(file.path)] = file
            self._breathe(number)
        for name in self._stamps.keys() - found.keys():
            del self._stamps[name]
        for name in self.sources.files.keys() - found.keys() - self._taken:
            self._put(name, None)
        for number, (name, file) in enumerate(found.items()):
            if stopped():
                return
            stamp = (file.size, file.mtime_ns)
            if self._stamps.get(name) != stamp:
                self._put(name, read_source(self.root, file.path))
            self._stamps[name] = stamp
            self._breathe(number)
        self._scanned_at, ended = began, time.monotonic()
        self._scan_at = ended + max(RESCAN_AFTER, RESCAN_TIMES * (ended - began))

    def _breathe(self, number: int) -> None:
        """Take in changes after some files, and yield to other threads."""
        if number % _BREATH == 0:
            self._take_changes()
            time.sleep(0)

    def _take_changes(self) -> None:
        while self._changed:
            name = self._changed.pop()
            self._taken.add(name)
            self._stamps.pop(name, None)
            self._put(name, read_source(self.root, self.root / name) if self.admits(name) else None)

    def _put(self, name: str, text: str | None) -> None:
        if text is not None:
            self.sources.put(name, text)
        elif name in self.sources.files:
            self.sources.drop(name)
        else:
            return
        self._stale = True

    def _reindex(self) -> None:
        if not self._stale:
            return
        self._stale = False
        chunks: list[Chunk] = []
        for name in sorted(self.sources.files):
            chunks += self.sources.files[name].chunks
            if len(chunks) >= MAX_CHUNKS:
                break
        self.similar = SimilarCode(chunks)
        self._indexed_at = time.monotonic()
