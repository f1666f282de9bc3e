"""One workspace as the engine uses it: the prior's index and the snippets, kept up to date with the disk."""

import time
from collections import OrderedDict
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from lacuna_model.core.background import Background
from lacuna_model.core.context import TextTokenizer
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Snapshot, Snippet
from lacuna_model.core.regions import standing
from lacuna_model.files.opening import absolute
from lacuna_model.files.scanning import WorkspaceSettings
from lacuna_model.prior import indexing
from lacuna_model.prior.index import Index, Segment
from lacuna_model.prior.indexing import refresh
from lacuna_model.snippets.chooser import SnippetChooser
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.workspace.known_names import KnownNames, known_names

# Once the changed documents have more tokens, the unchanged files are indexed again; sorting so many takes some
# hundredths of a second.
MERGE_TOKENS = 200_000
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="lacuna-names")
MAX_PROJECTS = 4
# Seconds between two looks at a workspace that is being read.
PAUSE_S = 0.02


class Project:
    """One workspace; files that may not be read are never taken in."""

    def __init__(self, root: Path, tokenizer: Tokenizer) -> None:
        self.root = absolute(root)
        self.snippets = SnippetChooser(self.root)
        self._is_indexed = False
        self._index = Index(tokenizer.vocab_size)
        self._tokenizer = tokenizer
        self._stored_at = indexing.location(self.root, tokenizer.fingerprint)
        self._files: indexing.IndexedFiles | None = None
        self._background = Background("lacuna-workspace", self._follow)

    def read(self, seconds: float) -> None:
        """Bring everything up to date with the disk, for at most so many seconds: for a command that ends."""
        until = time.monotonic() + seconds

        def is_late() -> bool:
            return time.monotonic() >= until

        self._load()
        self._refresh(is_late)
        self.snippets.index.refresh(is_late)

    def follow(self) -> None:
        """Read the workspace and keep up with it in the background, until :meth:`close`."""
        if not self._background.is_started:
            self._background.start()
            self.snippets.packages.start()

    @property
    def is_read(self) -> bool:
        """Whether all files were read once, and of packages what documents import, or that failed."""
        are_files_read = self._is_indexed and self.snippets.index.is_read
        return (are_files_read or self._background.has_failed) and self.snippets.packages.is_read

    def close(self) -> None:
        """Stop following."""
        self._background.stop()
        self.snippets.close()

    def segments(self, path: str) -> list[Segment]:
        """The segments that the prior searches, without the document itself."""
        return self._index.segments(self.name(path) if path else "")

    def choose(self, request: InfillRequest, tokenizer: TextTokenizer, budget: int) -> tuple[Snippet, ...]:
        """The snippets that the model should read besides the document, within a budget of tokens."""
        return self.snippets.choose(
            request.text,
            request.regions[0].start,
            str(absolute(request.path)),
            request.language,
            diagnostics=request.diagnostics,
            signatures=request.signatures,
            tokenizer=tokenizer,
            budget=budget,
        )

    def names_of(self, request: InfillRequest) -> list[KnownNames]:
        """For each region, what is known of names; empty in a language whose names are not known.

        Another thread reads the names of the file, while the model reads the context.
        """
        sources, path = self.snippets.index.sources, self.name(request.path)
        found = (known_names(request, region, sources, self.snippets.packages, path) for region in request.regions)
        known = [one for one in found if one is not None]
        if known:
            _THREAD.submit(known[0].read)
        return known

    def name(self, path: str) -> str:
        """A document's name in the index: its path from the root, or its absolute path where it lies outside."""
        return self.snippets.index.name(absolute(path))

    def _follow(self) -> None:
        """Read the workspace, and follow it until its folder is another one, or other rules hold."""
        stopped, is_behind = self._background.stopped, True
        self._load()
        if self._files is not None:  # what is gone or left out by now is dropped before the sources are read
            self._refresh(stopped.is_set)
        for changes in self.snippets.index.follow(stopped):
            if is_behind or self._index.num_changed > MERGE_TOKENS:
                self._refresh(stopped.is_set)
                is_behind = False
                for name in self._index.names - self.snippets.index.sources.files.keys():
                    self._index.remove(name)  # it is told once the sources have it, too
                continue
            for name, text in changes.items():
                if text is None:
                    self._index.remove(name)
                else:
                    self._index.update(name, self._tokenizer.encode(text))

    def _load(self) -> None:
        """Begin with the index that the last run has kept."""
        if self._files is None:
            self._files = indexing.load(self._stored_at, self._tokenizer.fingerprint)
            if self._files is not None:
                self._index.replace_all(self._files.documents)

    def _refresh(self, stopped: Callable[[], bool]) -> None:
        """Index all files as they are on disk, and keep the index for the next run."""
        known = self._files
        self._files = refresh(self.root, WorkspaceSettings(), self._tokenizer, known, stopped=stopped)
        self._index.replace_all(self._files.documents)
        if self._files is not known:
            indexing.save(self._stored_at, self._files, self._tokenizer.fingerprint)
        self._is_indexed = True


class Workspaces:
    """Projects by their root folder; the least recently used one is closed first. Safe to use from several threads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._projects: OrderedDict[Path, Project] = OrderedDict()
        self._lock = Lock()

    def follow(self, root: str) -> Project:
        """The project at ``root``; a new one is read in the background and kept up to date from now on."""
        project, is_new = self._find(absolute(root))
        if is_new:
            project.follow()
        return project

    def read(self, root: str, seconds: float) -> Project:
        """The project at ``root``, read for at most so many seconds and not followed: for a command that ends."""
        project, _ = self._find(absolute(root))
        project.read(seconds)
        return project

    def close(self) -> None:
        """Close all projects."""
        with self._lock:
            for project in self._projects.values():
                project.close()
            self._projects.clear()

    def _find(self, root: Path) -> tuple[Project, bool]:
        with self._lock:
            is_new = root not in self._projects
            if is_new:
                self._projects[root] = Project(root, self._tokenizer)
            self._projects.move_to_end(root)
            while len(self._projects) > MAX_PROJECTS:
                self._projects.popitem(last=False)[1].close()
            return self._projects[root], is_new


def snippets_only(
    request: InfillRequest,
    budget: int,
    project: Project | None,
    tokenizer: TextTokenizer,
    deadline: float | None,
) -> Generator[Snapshot, None, InfillResult]:
    """Wait until the workspace is read; return snippets for the first region, or why there are none.

    They have ``budget`` tokens at most.

    A snapshot follows each look at the workspace, so that other requests may run in between.
    """
    kept = standing(request.text.encode(), request.regions)
    if project is None:
        return InfillResult("ok", kept, FillStats(), "no workspace is read for this document")
    for _ in range(2):  # the first choice asks for the packages that the document imports
        while not project.is_read:
            if deadline is not None and time.monotonic() >= deadline:
                break
            yield Snapshot(0, kept, ((),) * len(kept))
            time.sleep(PAUSE_S)
        chosen = project.choose(request, tokenizer, budget)
    why = "" if chosen else project.snippets.why_none(str(absolute(request.path)))
    return InfillResult("ok", kept, FillStats(), why, snippets=chosen)
