"""Chooses the snippets that the model reads besides the open file."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from lacuna_model.core.background import Background
from lacuna_model.core.params import Diagnostic, Snippet
from lacuna_model.files.secrets import is_secret
from lacuna_model.languages.registry import language_for
from lacuna_model.snippets.defined import Definitions
from lacuna_model.snippets.definitions import ROWS_ABOVE, ROWS_BELOW, CursorRows
from lacuna_model.snippets.format import Splitter, counter, diagnostics_snippet, words
from lacuna_model.snippets.index import WorkspaceIndex
from lacuna_model.snippets.packages.index import PackageIndex
from lacuna_model.snippets.selection import Selection, select
from lacuna_model.snippets.signatures import SHARE, Signatures
from lacuna_model.snippets.sources import SnippetFile

# Rows around the cursor whose words are the query for similar code, and how many similar chunks are considered.
_QUERY_ABOVE = 12
_QUERY_BELOW = 4
_NUM_SIMILAR = 8
_SIMILAR_SCORE = 0.9
# Diagnostics change often and come last; they have a share of the budget of their own: one part in so many.
_DIAGNOSTICS_SHARE = 8
_MAX_DOCUMENTS = 32


class SnippetChooser:
    """Chooses snippets for the documents of one workspace, which is read by :meth:`refresh` or in the background.

    Paths are absolute or relative to the workspace. Files that its rules leave out are never quoted, open or not.
    """

    def __init__(self, root: Path) -> None:
        self.index = WorkspaceIndex(root)
        self.packages = PackageIndex(self.index.root)
        # For a document: snippets, signatures, and their files as they were.
        self._selections: OrderedDict[str, tuple[Selection, Selection, dict[str, SnippetFile | None]]] = OrderedDict()
        self._background = Background("lacuna-snippets", self._follow)

    def start(self) -> None:
        """Read the workspace, and what it imports of packages, in the background."""
        self._background.start()
        self.packages.start()

    def close(self) -> None:
        """Stop the background work."""
        self._background.stop()
        self.packages.stop()

    def _follow(self) -> None:
        for _ in self.index.follow(self._background.stopped):
            pass

    def refresh(self) -> None:
        """Read the workspace now; for choosers without background work."""
        for _ in self.index.refresh():
            pass

    def choose(
        self,
        text: str,
        at: int,
        path: str,
        language: str = "",
        *,
        diagnostics: Sequence[Diagnostic] = (),
        signatures: Sequence[Snippet] = (),
        tokenizer: Splitter,
        budget: int,
    ) -> tuple[Snippet, ...]:
        """The snippets for a cursor at ``at`` (bytes) of a document, in the order in which the model reads them.

        Together they take at most ``budget`` tokens. Only the files indexed so far are considered. ``signatures`` are
        what the editor's language servers say of names at the cursor, and come first among those of packages. The same
        snippets are returned in the same order until others are clearly better.
        """
        name = self.index.name(path)
        if is_secret(name):
            return ()
        self.index.touch()
        known = language_for(name, language)
        cursor, count = CursorRows.at(at, text.encode(), name, known.name if known else ""), counter(tokenizer)
        share = budget // _DIAGNOSTICS_SHARE
        reported = diagnostics_snippet(diagnostics, name, cursor.language, cursor.row, lambda one: count(one) <= share)
        around = "\n".join(cursor.view)
        budget -= share
        files = self.index.sources.files.copy()  # another thread may change them while snippets are chosen
        old, signed = self._still_there(name, files)
        is_known = cursor.language in self.packages.languages and self.index.admits(name)
        own = Signatures(self.packages, self.index.sources, cursor).candidates() if is_known else ()
        signed = select(signed, (*signatures, *own), cursor.row, around, count, budget // SHARE)
        left = budget - sum(map(count, signed.snippets))
        found = (*Definitions(self.index.sources, cursor).candidates(), *self._similar(cursor))
        selection = select(old, found, cursor.row, around, count, left)
        chosen = (*selection.snippets, *signed.snippets)
        self._selections[name] = selection, signed, {one.path: files.get(one.path) for one in chosen}
        self._selections.move_to_end(name)
        while len(self._selections) > _MAX_DOCUMENTS:
            self._selections.popitem(last=False)
        return tuple(
            msgspec.structs.replace(one, tokens=count(one)) for one in (*chosen, *([reported] if reported else ()))
        )

    def why_none(self, path: str) -> str:
        """The reason why no snippet was chosen for a document."""
        name = self.index.name(path)
        if is_secret(name):
            return f"{name} may hold secrets, so nothing is read with it"
        if not (others := self.index.sources.files.keys() - {name}):
            return f"{self.index.root} has no other source file that may be read"
        return (
            f"the other source files in {self.index.root} ({len(others)}) have no definition of a name used there and "
            "no similar code that fits in the budget"
        )

    def _similar(self, cursor: CursorRows) -> Iterator[Snippet]:
        """Similar code, without chunks of the document itself that the model reads anyway."""
        query = words("\n".join(cursor.around(_QUERY_ABOVE, _QUERY_BELOW)))
        for chunk, score in self.index.similar.nearest(query, _NUM_SIMILAR):
            source = self.index.sources.files.get(chunk.path)
            if (
                source is None
                or chunk.lines != source.lines
                or (chunk.path == cursor.path and abs(chunk.first - cursor.row) < ROWS_ABOVE + ROWS_BELOW)
            ):
                continue
            there = set(chunk.words)
            shared = [f"`{word}`" for word in dict.fromkeys(reversed(query)) if word in there and len(word) > 2]
            reason = f"similar to the code around line {cursor.row + 1}: {', '.join(shared[:3])}"
            yield Snippet(chunk.path, chunk.text, reason, score * _SIMILAR_SCORE)

    def _still_there(self, name: str, now: Mapping[str, SnippetFile]) -> tuple[Selection, Selection]:
        """The last selections for a document, without snippets of other files that have changed."""
        last, signed, files = self._selections.get(name, (Selection(), Selection(), {}))
        same = {path for path, source in files.items() if path == name or now.get(path) is source}
        there = [tuple(one for one in old.snippets if one.path in same) for old in (last, signed)]
        return Selection(there[0], last.row), Selection(there[1], signed.row)
