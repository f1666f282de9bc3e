"""Reads the files of a workspace into an index: only those that are new or have changed since the last time."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from lacuna_model.files.scanning import WorkspaceFile, WorkspaceSettings, read_source, scan
from lacuna_model.prior.index import IndexedDocuments, Tokens
from lacuna_model.prior.store import IndexedFiles, Mark
from lacuna_model.prior.suffix_array import token_type

# Bytes of text encoded at once; encoding takes many times the memory of the tokens.
BATCH_BYTES = 1 << 18


class FileTokenizer(Protocol):
    """The part of a tokenizer that indexing needs."""

    vocab_size: int

    @property
    def fingerprint(self) -> str:
        """Identifies its vocabulary."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of several texts."""
        ...


def refresh(
    root: Path,
    settings: WorkspaceSettings,
    tokenizer: FileTokenizer,
    known: IndexedFiles | None = None,
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> IndexedFiles:
    """Bring an index of the files under ``root`` up to date; returns ``known`` itself where nothing has changed.

    ``stopped`` is checked between files: the files read so far are indexed, and the others keep their entries in
    ``known``.
    """
    reader = _TokenCollector(root, tokenizer, known, settings.max_file_bytes)
    complete = True
    for file in scan(root, settings):
        if stopped():
            complete = False
            break
        reader.read(file)
    return reader.finish(complete=complete)


def name_of(root: Path, path: Path) -> str:
    """The name of a file in an index: its path from the root, with forward slashes."""
    return path.relative_to(root).as_posix()


class _TokenCollector:
    """Collects the tokens of files, known and newly read."""

    def __init__(
        self,
        root: Path,
        tokenizer: FileTokenizer,
        known: IndexedFiles | None,
        most_bytes: int,
    ) -> None:
        self._root = root.absolute()
        self._tokenizer = tokenizer
        self._kind = token_type(tokenizer.vocab_size)
        self._known = known
        self._old: Mapping[str, Tokens] = dict(known.documents.tokens()) if known else {}
        self._most_bytes = most_bytes
        self._marks: dict[str, Mark] = {}
        self._tokens: dict[str, Tokens] = {}
        self._waiting: dict[str, str] = {}
        self._waiting_bytes = 0

    def read(self, file: WorkspaceFile) -> None:
        """Read one file; a file that must not be quoted is only marked as seen."""
        name, mark = name_of(self._root, file.path), (file.size, file.mtime_ns)
        self._marks[name] = mark
        if self._known and self._known.marks.get(name) == mark:
            if name in self._old:
                self._tokens[name] = self._old[name]
            return
        text = read_source(self._root, file.path, self._most_bytes)
        if text is None:
            return
        self._waiting[name] = text
        self._waiting_bytes += file.size
        if self._waiting_bytes >= BATCH_BYTES:
            self._encode()

    def finish(self, *, complete: bool) -> IndexedFiles:
        """Index everything read; unless ``complete``, the files not reached keep their known entries."""
        self._encode()
        if self._known and not complete:
            self._tokens = {name: t for name, t in self._old.items() if name not in self._marks} | self._tokens
            self._marks = dict(self._known.marks) | self._marks
        if self._known and self._marks == self._known.marks:
            return self._known
        return IndexedFiles(IndexedDocuments.index(self._tokens, self._kind), self._marks)

    def _encode(self) -> None:
        encoded = self._tokenizer.encode_batch(list(self._waiting.values()))
        for name, ids in zip(self._waiting, encoded, strict=True):
            self._tokens[name] = np.array(ids, dtype=self._kind)
        self._waiting, self._waiting_bytes = {}, 0
