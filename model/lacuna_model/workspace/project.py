"""One workspace as the engine uses it: the prior's index and the snippets, kept up to date with the disk."""

import time
from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, groupby
from pathlib import Path
from threading import Lock

import numpy as np

from lacuna_model.core.background import Background
from lacuna_model.core.context import TextTokenizer
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Snapshot, Snippet
from lacuna_model.core.regions import standing
from lacuna_model.files.opening import Mark, absolute
from lacuna_model.languages.registry import language_for
from lacuna_model.prior import index
from lacuna_model.prior.index import Index, Segment, Tokens
from lacuna_model.snippets.chooser import SnippetChooser
from lacuna_model.snippets.index import BATCH, Changes
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.workspace.builtin_names import NAMES
from lacuna_model.workspace.known_names import KnownNames

# Tokens of the changed files that are sorted at each change, at most; that takes some hundredths of a second.
MOST_RECENT = 200_000
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
        self._index = Index[str](tokenizer.vocab_size, MOST_RECENT)
        self._tokenizer = tokenizer
        self._stored_at = index.location(self.root, tokenizer.fingerprint)
        # The marks of the files whose tokens are known, and what was found when they were compared last.
        self._marks = self.snippets.index.kept = dict[str, Mark]()
        self._new: dict[str, Tokens | None] = {}  # what the index lacks: at first it is sorted once
        self._is_kept = True
        self._found: dict[str, Mark] | None = None
        self._background = Background("lacuna-workspace", self._follow)

    def read(self, seconds: float) -> None:
        """Bring everything up to date with the disk, for at most so many seconds: for a command that ends."""
        until = time.monotonic() + seconds

        def is_late() -> bool:
            return time.monotonic() >= until

        self._load()
        for changes in self.snippets.index.refresh(is_late):
            self._take(changes)
        self._keep()

    def follow(self) -> None:
        """Read the workspace and keep up with it in the background, until :meth:`close`."""
        if not self._background.is_started:
            self._background.start()
            self.snippets.packages.start()

    @property
    def is_read(self) -> bool:
        """Whether all files were read once, and of packages what documents import, or that failed."""
        return (self._is_indexed or self._background.has_failed) and self.snippets.packages.is_read

    def close(self) -> None:
        """Stop following."""
        self._background.stop()
        self.snippets.close()

    def segments(self, path: str) -> list[Segment]:
        """The segments that the prior searches, without the document itself."""
        return self._index.segments((self.name(path),) if path else ())

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
        language = language_for(request.path, request.language)
        if language is None or language.name not in NAMES:
            return []
        around = language, self.snippets.index.sources, self.snippets.packages, self.name(request.path)
        known = [KnownNames(request, region, *around) for region in request.regions]
        _THREAD.submit(known[0].read)
        return known

    def name(self, path: str) -> str:
        """A document's name in the index: its path from the root, or its absolute path where it lies outside."""
        return self.snippets.index.name(absolute(path))

    def _follow(self) -> None:
        """Read the workspace, and follow it until its folder is another one, or other rules hold."""
        self._load()
        for changes in self.snippets.index.follow(self._background.stopped, self._keep):
            self._take(changes)

    def _load(self) -> None:
        """Begin with the index that the last run has kept."""
        if self._found is None and (kept := index.load(self._stored_at, self._tokenizer.fingerprint)) is not None:
            documents, marks = kept
            self._marks |= {name: marks[name] for name in documents.names if name in marks}
            self._index.replace_all(documents)

    def _take(self, changes: Changes) -> None:
        """Bring the index up to date with what the sources have found and read; what is known is not encoded again."""
        found, gone = self.snippets.index.found, {name for name, text in changes.items() if text is None}
        indexed = self._index.names
        known = indexed | self._new.keys()
        if found is not self._found:
            gone |= {name for name in known if name not in found or self._marks.get(name, found[name]) != found[name]}
            self._found = found
        texts = {
            name: text
            for name, text in changes.items()
            if text is not None and (name not in self._marks or self._marks[name] != found.get(name))
        }
        new = dict(self._encoded(texts))  # first: where this fails, nothing may seem to be known
        for name in gone | texts.keys():
            self._marks.pop(name, None)
        self._marks |= {name: found[name] for name in texts if name in found}
        self._new |= dict.fromkeys(gone & known) | new
        if indexed or self._is_indexed:
            self._update()

    def _encoded(self, texts: Mapping[str, str]) -> Iterator[tuple[str, Tokens]]:
        """Encode texts in parts: meanwhile that takes many times the memory of the tokens."""
        sizes = accumulate(map(len, texts.values()))
        for _, part in groupby(texts, lambda _: next(sizes) // BATCH):
            names = list(part)
            encoded = self._tokenizer.encode_batch([texts[name] for name in names])
            yield from zip(names, (np.asarray(ids, dtype=self._index.kind) for ids in encoded), strict=True)

    def _update(self) -> None:
        self._index.update(self._new)
        self._new, self._is_kept = {}, self._is_kept and not self._new

    def _keep(self) -> None:
        """Sort all files at once, and keep the index for the next run."""
        self._update()
        if not self._is_kept:
            index.save(self._stored_at, self._index.merge(), self._marks, self._tokenizer.fingerprint)
        self._is_kept, self._is_indexed = True, self.snippets.index.is_read


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
