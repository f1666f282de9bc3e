"""Fills under way: a fill goes on while the user types along its text, whichever request waits for it.

The engine writes a fill token by token. A key that agrees with what is written so far leaves the fill running, so that
its first line is there sooner than that of a new fill. A key that does not agree ends it.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

from lacuna_lsp.suggest.suggestions import CursorPlace, SuggestionMatch, agree, typed_since

log = logging.getLogger(__name__)

# A fill ends so many seconds after the last request that waited for it has left without an answer.
LEFT_S = 1.0


class FillUnderWay:
    """A fill of a place, from its request to its result.

    ``id`` names its request. ``text`` is what is written so far, ``heard`` whether anything was heard of it, and
    ``has_line`` whether its first line was kept as a suggestion.
    """

    def __init__(self, place: CursorPlace, *, several: bool) -> None:
        self.id = uuid.uuid4().hex
        self.place = place
        self.several = several
        self.text = ""
        self.heard = False
        self.has_line = False
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._num_waiting = 0
        self._ending: asyncio.TimerHandle | None = None

    def start(self, fill: Coroutine[Any, Any, None]) -> None:
        """Runs the fill, which tells :meth:`wrote` what it writes and keeps its result."""
        self._task = asyncio.ensure_future(fill)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._changed.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.debug("a fill failed: %s", error)  # a request that waits for it raises it

    def wrote(self, text: str, *, has_line: bool) -> None:
        """Takes the text so far."""
        self.text, self.heard, self.has_line = text, True, has_line
        self._changed.set()

    def serves(self, place: CursorPlace) -> bool:
        """Whether a request for ``place`` may wait for it: the user has typed along its text.

        A fill of which nothing was heard may still turn out to agree. One that is heard of and has no text is reading
        its context, which a new fill goes on reading.
        """
        if self.has_ended:
            return False
        if place == self.place:
            return True
        typed = typed_since(self.place, place)
        return typed is not None and (not self.heard or (bool(self.text) and agree(self.text, typed)))

    @property
    def has_ended(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self._task is None or self._task.done()

    async def served(self, place: CursorPlace, find: Callable[[], SuggestionMatch | None]) -> SuggestionMatch | None:
        """Waits until ``find`` finds what it has kept for a place; None once that cannot be.

        Raises the fill's ServiceError or UnfinishedError.
        """
        self._num_waiting += 1
        if self._ending is not None:
            self._ending.cancel()
        answered = False
        try:
            while (match := find()) is None and self.serves(place):
                self._changed.clear()
                await self._changed.wait()
            answered = True
            if match is None and self._task is not None and self._task.done() and not self._task.cancelled():
                self._task.result()
            return match
        finally:
            self._num_waiting -= 1
            if not answered and not self._num_waiting:
                self._ending = asyncio.get_running_loop().call_later(LEFT_S, self.cancel)

    def cancel(self) -> None:
        """Ends the fill; what it has read and written is the engine's to use again."""
        if self._task is not None:
            self._task.cancel()


class UnderWay:
    """The fills under way of one client, at most one per document."""

    def __init__(self) -> None:
        self._fills: dict[str, FillUnderWay] = {}

    def find(self, place: CursorPlace, *, several: bool) -> FillUnderWay | None:
        """Returns the fill that serves a place with ``several`` candidates or one; ends the document's other one."""
        fill = self._fills.get(place.uri)
        if fill is not None and fill.serves(place) and (fill.several or not several):
            return fill
        self.cancel(place.uri)
        return None

    def has(self, id: str) -> bool:
        """Whether the fill of a request is under way."""
        return any(fill.id == id and not fill.has_ended for fill in self._fills.values())

    def start(self, fill: FillUnderWay, run: Callable[[FillUnderWay], Coroutine[Any, Any, None]]) -> None:
        """Runs a fill in place of the document's other one."""
        self.cancel(fill.place.uri)
        self._fills[fill.place.uri] = fill
        fill.start(run(fill))

    def cancel(self, uri: str) -> None:
        """Ends the fill of a document, if there is one."""
        if (fill := self._fills.pop(uri, None)) is not None:
            fill.cancel()

    def cancel_others(self, uri: str) -> None:
        """Ends the fills of all documents but this one."""
        for other in [running for running in self._fills if running != uri]:
            self.cancel(other)
