"""What goes on in one document: a request that waits, a fill under way, a suggestion that is shown, reading ahead."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from lacuna_lsp.document import ClientDocument
from lacuna_lsp.suggest.suggestion import Suggestion, Texts, num_off
from lacuna_model.core.params import Snippet
from lacuna_server.wire.protocol import Edit

T = TypeVar("T")

KEPT = 32
# Characters that a person types over a suggestion; more at once is pasted.
MAX_TYPED = 40
# A fill ends so many seconds after the last request that waited for it has left without an answer.
LEFT_S = 1.0


class DocumentState:
    """One open document: its newest request, the fill under way, and all suggestions that may be served again.

    ``told`` is what other language servers have said of the names at a line, and the line.
    """

    def __init__(self, document: ClientDocument) -> None:
        self.document = document
        self.told: tuple[int, Sequence[Snippet]] = 0, ()
        self._suggestions: list[Suggestion] = []  # the newest is the last, and alone may be under way
        self._shown: tuple[Suggestion, Texts] | None = None
        self._refused: Suggestion | None = None
        self._request: asyncio.Task[Any] | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._read: Callable[[], Awaitable[None]] | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def fill(self) -> Suggestion | None:
        """The suggestion whose fill is under way."""
        return self._suggestions[-1] if self._suggestions and self._suggestions[-1].is_under_way else None

    # --- the newest request

    async def newest(self, request: Coroutine[Any, Any, T], then: Callable[[], None]) -> T | None:
        """Returns the answer of a request; None if an edit, a newer request or :meth:`cancel` has ended it.

        ``then`` is called at its end, unless it was ended like that.
        """
        self._end_request()
        self._stay()
        self._request = task = asyncio.ensure_future(request)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():  # by the client
                raise
            return None
        finally:
            if self._request is task:
                self._end_request()
                then()

    def _end_request(self) -> None:
        """Ends the request that waits; its fill goes on for a while."""
        if self._request is None:
            return
        if not self._request.done() or self._request.cancelled():
            self._request.cancel()
            self._stay()
            self._leaving = asyncio.get_running_loop().call_later(LEFT_S, self.end_fill)
        self._request = None

    def _stay(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()

    def edited(self, edits: Sequence[Edit]) -> None:
        """Moves the suggestions with edits, each to the result of the previous one; a waiting request ends."""
        self._end_request()
        for edit in edits:
            for one in self._suggestions:
                one.follow(edit)

    def cancel(self) -> None:
        """Ends all that goes on: the user has left the document, or closed it."""
        self._end_request()
        self.end_fill()
        self.hide()

    # --- suggestions

    def find(self, cursor: Edit) -> Suggestion | None:
        """Returns the newest suggestion for a cursor; one without a text tells that there is none for its place."""
        kept = (one for one in reversed(self._suggestions) if one.is_kept)
        return next((one for one in kept if one.rests(cursor) or one.is_at(cursor)), None)

    def of(self, id: str) -> Suggestion | None:
        """Returns the suggestion of a request, or None if it is no longer stored."""
        return next((one for one in self._suggestions if one.id == id), None)

    def start(self, suggestion: Suggestion, fill: Coroutine[Any, Any, None]) -> None:
        """Runs the fill of a suggestion, in place of another one."""
        self.end_fill()
        kept = [one for one in self._suggestions if one.is_kept]
        self._suggestions = [*kept[1 - KEPT :], suggestion]
        suggestion.start(fill)

    def end_fill(self) -> None:
        """Ends the fill under way, if there is one."""
        if (fill := self.fill) is not None:
            fill.cancel()

    def show(self, suggestion: Suggestion, texts: Texts) -> None:
        """Records what of a suggestion the user sees now: from its place on, by the index of each text."""
        self._shown = (suggestion, texts) if texts else None

    def hide(self) -> None:
        """Records that nothing is shown, so that the next edit is no refusal; nothing is read ahead."""
        self._shown = None
        self.rest()

    def refused(self, cursor: Edit) -> tuple[Suggestion, Sequence[int]] | None:
        """Returns what is shown, and shown no more, if the user has typed something else up to a cursor."""
        if self._shown is None or self._shown[0].is_answered:
            return None
        suggestion, texts = self._shown
        typed = suggestion.typed(cursor) or ""
        if not 0 < min(num_off(text, typed) for _, text in texts) <= MAX_TYPED:
            return None
        self._shown = None
        self.answered(suggestion, refused=True)
        return suggestion, [index for index, _ in texts]

    def answered(self, suggestion: Suggestion, *, refused: bool) -> None:
        """Records that the user has taken or refused a suggestion: what they type over it later is no refusal."""
        suggestion.is_answered = True
        if refused:
            self._refused = suggestion

    def follows_refusal(self, suggestion: Suggestion) -> bool:
        """Whether the user has typed over another suggestion, or this one, earlier in its line."""
        return self._refused in self._suggestions and self._refused.begins_line_of(suggestion)

    # --- reading ahead

    def rest(self, read: Callable[[], Awaitable[None]] | None = None, pause_s: float = 0.0) -> None:
        """Lets the engine read ahead, by ``read``, once nothing has happened for a while; without it, stops that."""
        self._read = read
        if self._reading is not None:
            self._reading.cancel()

        async def wait() -> None:
            await asyncio.sleep(pause_s)
            if read is not None:
                await read()

        self._reading = asyncio.ensure_future(wait()) if read is not None else None

    def read_again(self, pause_s: float) -> None:
        """Reads ahead for the same place: the engine was not ready."""
        if self._read is not None:
            self.rest(self._read, pause_s)
