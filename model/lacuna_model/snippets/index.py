"""The index of a workspace's sources, read in the background, and of their chunks for similar code."""

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.background import Background
from lacuna_model.files import ignore
from lacuna_model.files.opening import absolute
from lacuna_model.files.scanning import WorkspaceSettings, admits, quotable, read_source, scan
from lacuna_model.snippets.format import plain
from lacuna_model.snippets.sources import Chunk, Sources

# The index is held in memory: this is about 9 MB of text.
MAX_CHUNKS = 12_000
# Seconds after which the files on disk are scanned again, and between two builds of the index over chunks.
RESCAN_AFTER = 120.0
REINDEX_AFTER = 5.0
# After so many files, a scan takes in changes and yields to other threads.
_BREATH = 20


@contextmanager
def _without_jax() -> Iterator[None]:
    """Let an import of jax fail, unless it is loaded.

    bm25s runs one operation of jax if it can, for a function that is not used here. Jax then takes three quarters of a
    GPU's memory, which the model needs.
    """
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]  # None: cannot be imported
    hidden = "jax" not in modules
    if hidden:
        modules["jax"] = None
    try:
        yield
    finally:
        if hidden:
            del modules["jax"]


@cache
def _bm25s() -> Any:
    """The library, which takes as long to import as half the engine: the first suggestion does without it."""
    with _without_jax():
        import bm25s  # type: ignore[import-untyped]  # has no stubs
    # It sets its own level to DEBUG, and writes into the log of whoever logs at all.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return bm25s


class SimilarCode:
    """An immutable index over chunks; changes need a new one."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = [chunk for chunk in chunks if chunk.words][:MAX_CHUNKS]
        self._index: Any = None
        if self.chunks:
            self._index = _bm25s().BM25(method="lucene")
            self._index.index([chunk.words for chunk in self.chunks], show_progress=False)
            scores = self._index.scores
            # The most that each word can add to a score; divided by their sum, scores are shares of the highest
            # possible score.
            self._most: NDArray[np.float32] = np.maximum.reduceat(scores["data"], scores["indptr"][:-1])

    def nearest(self, query: Sequence[str], count: int) -> list[tuple[Chunk, float]]:
        """The ``count`` chunks most similar to a query of words, best first, each with a score in 0..1."""
        ids = self._index.get_tokens_ids(sorted(set(query))) if self._index is not None else []
        if not ids:
            return []
        scores = self._index.get_scores_from_ids(ids) / self._most[ids].sum()
        best = np.argsort(-scores, kind="stable")[:count]
        return [(self.chunks[i], float(scores[i])) for i in best if scores[i] > 0]


class WorkspaceIndex:
    """The sources of a workspace, from disk and from the editor, and the index over their chunks.

    The editor's text outranks the disk's. In the background one thread does all the work; readers never wait for it and
    see the state so far.
    """

    def __init__(self, root: Path, settings: WorkspaceSettings) -> None:
        self.root = absolute(root)
        self.sources = Sources()
        self.similar = SimilarCode(())
        self._settings = settings
        self._stamps: dict[str, tuple[int, int]] = {}
        self._open: dict[str, str] = {}
        self._changed: dict[str, str | None] = {}
        self._taken: set[str] = set()  # what has changed since the last scan began
        self._admitted: dict[str, bool] = {}
        self._stale = False
        self._scanned_at = self._indexed_at = float("-inf")
        self._rules = ignore.stamps(self.root)
        self._num_asked = self._num_answered = 0  # how often a scan was asked for
        self._background = Background("lacuna-snippets", self._work)

    def name(self, path: str | Path) -> str:
        """A file's path relative to the workspace, with forward slashes; its absolute path where it lies outside."""
        whole = absolute(self.root / path)
        return whole.relative_to(self.root).as_posix() if whole.is_relative_to(self.root) else whole.as_posix()

    def admits(self, name: str) -> bool:
        """Whether a file may be read; ignored, secret and outside files may not, even if they are open."""
        known = self._admitted.get(name)
        if known is None:
            known = self._admitted[name] = admits(self.root, self.root / name, self._settings)
        return known

    def open(self, name: str, text: str) -> None:
        """Take in the text of a file that is open in an editor."""
        if self._open.get(name) != text and self.admits(name):
            self._open[name] = text
            self._changed[name] = text
            self._background.wake.set()

    def close(self, name: str) -> None:
        """Read a file from disk again, since no editor has it open any more."""
        if self._open.pop(name, None) is not None:
            self.changed(name)

    def changed(self, name: str) -> None:
        """Take in a file that has changed on disk or was removed."""
        if name not in self._open:
            self._changed[name] = None
            self._background.wake.set()

    @property
    def is_read(self) -> bool:
        """Whether all files were read once and the index over their chunks was built, or that failed."""
        if self._background.has_failed:
            return True
        return self._scanned_at > float("-inf") and (self._indexed_at > float("-inf") or not self._stale)

    def is_open(self, name: str) -> bool:
        """Whether an editor has the file open."""
        return name in self._open

    def rows(self, name: str) -> list[str]:
        """The rows of a file that was read, as an editor has them if it is open; none of any other."""
        source, text = self.sources.files.get(name), self._open.get(name)
        if source is None:
            return []
        return source.lines if text is None else plain(text).split("\n")

    def touch(self) -> None:
        """Scan the disk again if the last scan is long ago, or other rules hold; called when the workspace is used."""
        if self._rules != ignore.stamps(self.root) or time.monotonic() - self._scanned_at > RESCAN_AFTER:
            self._background.wake.set()

    def look_again(self) -> None:
        """Scan the disk again: files may be gone, or left out by other rules, or new."""
        self._num_asked += 1
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
            self._num_asked += 1
        if self._num_answered != self._num_asked or time.monotonic() - self._scanned_at > RESCAN_AFTER:
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
        num_asked, found = self._num_asked, {}
        for number, file in enumerate(scan(self.root, self._settings)):
            if stopped():
                return
            found[self.name(file.path)] = file
            self._breathe(number)
        for name in [name for name in list(self._open) if not self.admits(name)]:
            self._open.pop(name, None)
        for name in self._stamps.keys() - found.keys():
            del self._stamps[name]
        for name in self.sources.files.keys() - found.keys() - self._taken - set(self._open):
            self._put(name, None)
        for number, (name, file) in enumerate(found.items()):
            if stopped():
                return
            stamp = (file.size, file.mtime_ns)
            if name not in self._open and self._stamps.get(name) != stamp:
                self._put(name, read_source(self.root, file.path, self._settings.max_file_bytes))
            self._stamps[name] = stamp
            self._breathe(number)
        self._scanned_at, self._num_answered = time.monotonic(), num_asked

    def _breathe(self, number: int) -> None:
        """Take in changes after some files, and yield to other threads."""
        if number % _BREATH == 0:
            self._take_changes()
            time.sleep(0)

    def _take_changes(self) -> None:
        while self._changed:
            name, text = self._changed.popitem()
            self._taken.add(name)
            if text is None:
                self._stamps.pop(name, None)
                text = self._on_disk(name)
            elif len(text) > self._settings.max_file_bytes or not quotable(text):
                text = None
            self._put(name, text)

    def _on_disk(self, name: str) -> str | None:
        """The text of a file on disk; None where it may not be read."""
        return read_source(self.root, self.root / name, self._settings.max_file_bytes) if self.admits(name) else None

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
