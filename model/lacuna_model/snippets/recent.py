"""A ring of the chunks that were edited or opened last (as in llama.vim)."""

from collections.abc import Container, Iterator
from dataclasses import dataclass

from lacuna_model.core.params import Snippet
from lacuna_model.files.secrets import holds_credential
from lacuna_model.snippets.words import plain, similarity, words

NUM_CHUNKS = 16
# Rows of a chunk before and after the place of the edit.
_ROWS_BEFORE = 12
_ROWS_AFTER = 12
# A chunk replaces an older one of the same file that is more similar than this.
_SAME = 0.6
_BEST_SCORE = 0.6
_DECAY = 0.85


@dataclass(frozen=True, slots=True)
class _Recent:
    path: str
    text: str
    reason: str


class RecentChunks:
    """The last chunks, the newest at the end."""

    def __init__(self) -> None:
        self._ring: tuple[_Recent, ...] = ()

    def note(self, path: str, text: str, offset: int, reason: str) -> None:
        """Add the rows around ``offset`` (bytes) of a document; rows that hold a credential are not kept."""
        row = plain(text.encode()[:offset].decode("utf-8", errors="ignore")).count("\n")
        lines = plain(text).split("\n")[max(0, row - _ROWS_BEFORE) : row + _ROWS_AFTER]
        chunk = "".join(f"{line.rstrip()}\n" for line in lines).strip("\n") + "\n"
        if not chunk.strip() or holds_credential(chunk):
            return
        others = [one for one in self._ring if one.path != path or similarity(one.text, chunk) < _SAME]
        self._ring = (*others, _Recent(path, chunk, reason))[-NUM_CHUNKS:]

    def candidates(self, path: str, query: set[str], known: Container[str]) -> Iterator[Snippet]:
        """The chunks of ``known`` files except ``path``; newer ones and more words of ``query`` score higher."""
        others = [one for one in reversed(self._ring) if one.path != path and one.path in known]
        for age, one in enumerate(others):
            shared = len(query & set(words(one.text))) / max(1, len(query))
            yield Snippet(one.path, one.text, one.reason, _BEST_SCORE * _DECAY**age * (0.5 + 0.5 * shared))
