"""Snippets for a file without a project: of the files beside it that its text names.

Nothing else of the folder is read: it may be anyone's, such as that of all downloads.
"""

import os
import re
from pathlib import Path

from lacuna_model.core.params import Snippet
from lacuna_model.files.scanning import WorkspaceSettings, admits, read_source
from lacuna_model.languages.registry import language_for
from lacuna_model.snippets.defined import Definitions
from lacuna_model.snippets.format import Splitter, TokenCounts
from lacuna_model.snippets.references import ROWS_ABOVE, ROWS_BELOW
from lacuna_model.snippets.selection import Selection, select
from lacuna_model.snippets.sources import Sources
from lacuna_model.snippets.words import plain

MAX_ENTRIES = 5000  # of the folder, in any order
MAX_READ = 16  # files
_WORD = re.compile(r"\w+")


def beside(
    path: Path, text: str, at: int, language: str = "", *, tokenizer: Splitter, budget: int
) -> tuple[Snippet, ...]:
    """The snippets for a cursor at ``at`` (bytes) of the document ``path``, in the order in which the model reads them.

    Together they take at most ``budget`` tokens.
    """
    known = language_for(path.name, language)
    if known is None:
        return ()
    sources, settings, root = Sources(), WorkspaceSettings(), path.absolute().parent
    for name in _named(root, text, path.name):
        content = (
            read_source(root, root / name, settings.max_file_bytes) if admits(root, root / name, settings) else None
        )
        if content is not None:
            sources.put(name, content)
    row = plain(text.encode()[:at].decode("utf-8", errors="ignore")).count("\n")
    lines = plain(text).split("\n")
    around = "\n".join(lines[max(0, row - ROWS_ABOVE) : row + ROWS_BELOW + 1])
    found = Definitions(sources, lines, row, path.name, known.name).candidates()
    return select(Selection(), found, row, around, TokenCounts().by(tokenizer), budget).snippets


def _named(root: Path, text: str, own: str) -> list[str]:
    """The names of the files of a folder whose stem is a word of a text."""
    words, found = set(_WORD.findall(text)), list[str]()
    try:
        with os.scandir(root) as entries:
            for _, entry in zip(range(MAX_ENTRIES), entries, strict=False):
                stem, _, ending = entry.name.partition(".")
                if stem in words and ending and entry.name != own and entry.is_file(follow_symlinks=False):
                    found.append(entry.name)
    except OSError:
        return []
    return sorted(found)[:MAX_READ]
