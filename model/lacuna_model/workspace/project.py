"""One workspace as the engine uses it: the prior's index and the snippets, kept up to date with the disk."""

import contextlib
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from watchfiles import watch

from lacuna_model.core.context import TextTokenizer
from lacuna_model.core.params import InfillRequest, Snippet
from lacuna_model.files.ignore import IGNORE_NAMES
from lacuna_model.files.scanning import WorkspaceSettings, admits, quotable, read_source
from lacuna_model.prior import store
from lacuna_model.prior.encoding import FileTokenizer, LineEncoder
from lacuna_model.prior.index import Index, Segment
from lacuna_model.prior.indexing import IndexProgress, name_of, refresh
from lacuna_model.snippets.chooser import SnippetChooser

# Once the changed documents have more tokens, the unchanged files are indexed again; sorting so many takes some
# hundredths of a second.
MERGE_TOKENS = 200_000
# Milliseconds between scans of all files, since the system may drop notifications of very many changes.
RESCAN_MS = 600_000


class Project:
    """One workspace; files that may not be read are never taken in."""

    def __init__(self, root: Path, tokenizer: FileTokenizer, settings: WorkspaceSettings) -> None:
        self.root = root.absolute()
        self.settings = settings
        self.progress = IndexProgress()
        self._index = Index.for_vocabulary(tokenizer.vocab_size)
        self._snippets = SnippetChooser(self.root, settings, background=False)
        self._tokenizer = tokenizer
        self._encoder = LineEncoder(tokenizer)
        self._kept = store.location(self.root, tokenizer.fingerprint)
        self._files: store.IndexedFiles | None = None
        self._stop = Event()
        self._thread: Thread | None = None

    def read(self, seconds: float) -> None:
        """Bring everything up to date with the disk, for at most so many seconds: for a command that ends."""
        until = time.monotonic() + seconds

        def is_late() -> bool:
            return time.monotonic() >= until

        self._refresh(is_late)
        self._snippets.index.refresh(stopped=is_late)

    def follow(self) -> None:
        """Read the workspace and keep up with it in the background, until :meth:`close`."""
        if self._thread is None:
            self._thread = Thread(target=self._follow, name="lacuna-workspace", daemon=True)
            self._thread.start()
            self._snippets.index.start()

    @property
    def is_read(self) -> bool:
        """Whether all files were read once."""
        return self.progress.ready and self._snippets.index.is_read

    def close(self) -> None:
        """Stop following."""
        self._stop.set()
        self._snippets.close()
        if self._thread is not None:
            self._thread.join()

    def segments(self, path: str) -> list[Segment]:
        """The segments that the prior searches, without the document itself."""
        return self._index.segments(self.name(path) if path else "")

    def choose(self, request: InfillRequest, tokenizer: TextTokenizer, budget: int) -> tuple[Snippet, ...]:
        """The snippets that the model should read besides the document, within a budget of tokens."""
        return self._snippets.choose(
            request.text,
            request.regions[0].start,
            str(Path(request.path).absolute()),
            request.language,
            diagnostics=request.diagnostics,
            tokenizer=tokenizer,
            budget=budget,
        )

    def why_none(self, path: str) -> str:
        """The reason why no snippet was chosen for a document."""
        return self._snippets.why_none(str(Path(path).absolute()))

    def name(self, path: str) -> str:
        """A document's name in the index: its path from the root, or its absolute path where it lies outside."""
        absolute = Path(path).absolute()
        return name_of(self.root, absolute) if absolute.is_relative_to(self.root) else absolute.as_posix()

    def _follow(self) -> None:
        try:
            self._refresh(self._stop.is_set)
        finally:
            # Whoever waits for the project goes on without it where it cannot be read.
            self._advance(dataclasses.replace(self.progress, ready=True))
        while not self._stop.is_set():
            # The system watches a limited number of folders; beyond that only the scans find changes.
            with contextlib.suppress(OSError):
                self._watch()
            if not self._stop.wait(RESCAN_MS / 1e3):
                self._refresh(self._stop.is_set)

    def _watch(self) -> None:
        """Take in changes on disk, until :meth:`close`; raises OSError where the folder cannot be watched."""
        changes = watch(
            self.root, stop_event=self._stop, rust_timeout=RESCAN_MS, yield_on_timeout=True, raise_interrupt=False
        )
        for changed in changes:
            rules_changed = any(Path(path).name in IGNORE_NAMES for _, path in changed)
            if rules_changed:
                self._forget_ignored()
            for _, path in changed:
                self._look(path)
            if not changed or rules_changed or self._index.num_changed > MERGE_TOKENS:
                self._refresh(self._stop.is_set)

    def _forget_ignored(self) -> None:
        """Drop all files that the changed rules leave out, before any other file is read."""
        for segment in self._index.segments(""):
            for name in segment.documents.names:
                if not admits(self.root, self.root / name, self.settings):
                    self._index.remove(name)
        self._snippets.index.rules_changed()

    def _refresh(self, stopped: Callable[[], bool]) -> None:
        """Bring the unchanged files up to date with the disk, and keep their index for the next run."""
        if self._files is None:
            self._files = store.load(self._kept, self._tokenizer.fingerprint)
            if self._files is not None:
                self._index.settle(self._files.documents)
        known = self._files
        self._files = refresh(self.root, self.settings, self._tokenizer, known, advance=self._advance, stopped=stopped)
        if self._files is not known:
            self._index.settle(self._files.documents)
            # If the cache cannot be written, the next run reads the files again.
            with contextlib.suppress(OSError):
                store.save(self._kept, self._files, self._tokenizer.fingerprint)
        self._advance(dataclasses.replace(self.progress, ready=True))

    def _advance(self, progress: IndexProgress) -> None:
        self.progress = progress

    def _look(self, path: str) -> None:
        """Take in a file from disk."""
        self._snippets.changed(path)
        self._take(path, read_source(self.root, Path(path).absolute(), self.settings.max_file_bytes))

    def _take(self, path: str, text: str | None) -> None:
        """Put the text of a document into the index; remove the document where it may not be read."""
        name = self.name(path)
        if text is not None and admits(self.root, Path(path).absolute(), self.settings) and quotable(text):
            self._index.update(name, self._encoder.encode(text))
        else:
            self._index.remove(name)
