"""Follows the edits of a document: edits of neighbouring lines are one change, an edit elsewhere begins another."""

import asyncio
from collections import deque
from collections.abc import Sequence

from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.next_edit.offers import Offer
from lacuna_model.core.params import PastChange
from lacuna_model.languages.registry import language_for
from lacuna_model.next_edit.changes import RecentChange, hunks, nearest
from lacuna_model.next_edit.tokens import TokenizedText
from lacuna_server.wire.protocol import Edit

NEAR_ROWS = 2  # an edit so many lines away from the last one belongs to the same change
REMEMBERED = 8


class History:
    """The changes of one document, the newest last, and what is looked for after it.

    ``origin`` is the change whose places are offered one after the other, ``ahead`` what follows it, and
    ``writing`` what the model writes there; an edit stops both. While it ``is_silent``, nothing is offered until the
    next edit. While the user is ``erasing``, nothing is offered either.
    """

    def __init__(self) -> None:
        self._before: ClientDocument | None = None
        self._rows = (0, 0)
        self._past: deque[PastChange] = deque(maxlen=REMEMBERED)
        self.erasing = False
        self.origin: RecentChange | None = None
        self.is_silent = False
        self.ahead: asyncio.Task[list[Offer]] | None = None
        self.writing: asyncio.Task[list[Offer]] | None = None

    def stop(self) -> None:
        """Looks for nothing any more."""
        for task in (self.ahead, self.writing):
            if task is not None:
                task.cancel()
        self.ahead = self.writing = None

    def edited(self, before: ClientDocument, after: ClientDocument, edits: Sequence[Edit]) -> None:
        """Records edits, each to the result of the previous one, that led from one text to another."""
        for edit in edits:
            removed = before.between(edit.start, edit.end) if len(edits) == 1 else b""
            self.erasing = not edit.text and _is_backspace(removed)
            end = min(edit.start + len(edit.text.encode()), after.size)
            rows = after.position(min(edit.start, after.size)).line, after.position(end).line
            if self._before is None or self._is_elsewhere(rows):
                self._close(before)
                self._before, self._rows = before, rows
            else:
                self._rows = min(self._rows[0], rows[0]), max(self._rows[1], rows[1])

    def _is_elsewhere(self, rows: tuple[int, int]) -> bool:
        first, last = self._rows
        return rows[0] > last + NEAR_ROWS or rows[1] < first - NEAR_ROWS

    def _close(self, text: ClientDocument) -> None:
        """Remembers the change that ends here; ``text`` is the document behind it."""
        change = self.change(text)
        if change is not None:
            self._past.append(PastChange(text.path, *change.lines))

    def change(self, current: ClientDocument) -> RecentChange | None:
        """Returns the change that the user makes now, or None."""
        if self._before is None:
            return None
        old, new = self._before.text.decode(), current.text.decode()
        hunk = nearest(hunks(old, new), self._rows[1])
        if hunk is None:
            return None
        return RecentChange(TokenizedText(old), TokenizedText(new), hunk, language_for(current.path, current.language))

    def remember(self, path: str, old: str, new: str) -> None:
        """Adds a change of lines that was made at once, such as an accepted offer."""
        self._past.append(PastChange(path, old.strip(), new.strip()))

    @property
    def last_row(self) -> int:
        """The last line of the change that the user makes now."""
        return self._rows[1]

    @property
    def past(self) -> tuple[PastChange, ...]:
        """The finished changes."""
        return tuple(self._past)


def _is_backspace(removed: bytes) -> bool:
    """Whether a deletion is that of a character or of blanks, as by the keys that erase while one types."""
    text = removed.decode(errors="ignore")
    return "\n" not in text and (len(text) <= 1 or not text.strip())
