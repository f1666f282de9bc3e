"""A suggestion: what a fill writes at one place of a document, while it is under way and afterwards; and all of these.

The engine writes a fill token by token. A key that agrees with what is written so far leaves it running, so that its
first line is there sooner than that of a new fill. ``clean`` uses only the text and the file's line ending, and its
result is kept; ``distinct`` uses the text before the cursor at display time. Where a text ends, the engine has decided.
"""

import asyncio
import logging
import re
import uuid
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from lacuna_lsp.document import ClientDocument
from lacuna_lsp.suggest.triggers import sure_part
from lacuna_model.core.params import InfillResult, Snapshot, Snippet
from lacuna_model.text.diff import num_common
from lacuna_model.text.lines import LINE_END
from lacuna_server.wire.protocol import Edit

log = logging.getLogger(__name__)

# An edit fewer bytes away has changed what the model has read about the place.
NEAR = 1000
# So many brackets and quotes an editor may insert behind the cursor while the user types.
MAX_CLOSED = 4
_CLOSERS = frozenset(b")]}\"'`")

# Suggestions of a document that may be served again.
KEPT = 32
# Characters that a person types over a suggestion; more at once is pasted.
MAX_TYPED = 40
# A fill ends so many seconds after the last request that waited for it has left without an answer.
LEFT_S = 1.0
# A model that writes one line so often in a row is stuck.
REPEATS = 3
T = TypeVar("T")
Texts = list[tuple[int, str]]
_WORD = re.compile(r"\w")


class Suggestion:
    """Texts for one place of a document, best first.

    It stands at a byte offset, which moves as the document is edited, and knows what the user has typed there since.
    A ``cursor`` is an edit that counts as made: that of the selected completion, or an empty one. ``id`` names the fill
    in requests and feedback. ``several`` means that the engine was asked for several candidates. ``lines`` and
    ``words`` say how likely the first text is right up to the end of each. ``why`` says why there is no text, where
    there is none. ``written`` is what the fill has written so far, None while nothing was heard of it, and ``is_kept``
    whether it has texts to show, or has ended with none. ``is_partly_taken`` says that the user has taken a
    part of it, ``is_answered`` that they have taken or refused it.
    """

    def __init__(self, cursor: Edit, standing: bytes, kind: str = "", *, several: bool) -> None:
        """``standing`` is what the cursor's edit replaces in the document, ``kind`` its language and place."""
        self.id = uuid.uuid4().hex
        self.at = cursor.start
        self.lead = cursor.text.encode()  # what has to stand at ``at`` before anything typed
        self.kind = kind
        self.several = several
        self.texts: tuple[str, ...] = ()
        self.lines: tuple[float, ...] = ()
        self.words: tuple[tuple[int, float], ...] = ()
        self.why = ""
        self.written: str | None = None
        self.is_kept = False
        self.is_partly_taken = False
        self.is_answered = False
        self._typed = standing
        self._is_in_place = True
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    # --- its place

    def follow(self, edit: Edit) -> None:
        """Follows an edit of the document. One that is near its place ends it."""
        new, end = edit.text.encode(), self.at + len(self._typed)
        if self.at <= edit.start and edit.end <= end:
            self._typed = self._typed[: edit.start - self.at] + new + self._typed[edit.end - self.at :]
        elif edit.end <= self.at - NEAR:
            self.at += len(new) - (edit.end - edit.start)
        elif edit.start < end + NEAR:
            self._is_in_place = False
        most = len(self.lead) + NEAR + max((len(text.encode()) for text in self.texts), default=0)
        if len(self._typed) > most:
            self._is_in_place = False  # the user is far from it

    def typed(self, cursor: Edit) -> str | None:
        """Returns what was typed from its place to a cursor; None for a cursor elsewhere, and after another edit."""
        end = self.at + len(self._typed)
        if not self._is_in_place or not self.at <= cursor.start <= cursor.end <= end:
            return None
        closed, text = self._closed(cursor), self._typed[: cursor.start - self.at] + cursor.text.encode()
        if len(closed) > MAX_CLOSED or not set(closed) <= _CLOSERS or not text.startswith(self.lead):
            return None
        return text[len(self.lead) :].decode()

    def _closed(self, cursor: Edit) -> bytes:
        """What the editor has inserted behind the cursor."""
        return self._typed[cursor.end - self.at :]

    def is_at(self, cursor: Edit) -> bool:
        """Whether nothing was typed at its place, where the cursor is."""
        return self.typed(cursor) == "" and not self._closed(cursor)

    def begins_line_of(self, other: "Suggestion") -> bool:
        """Whether another suggestion is for a place in the line that the user has typed here."""
        typed = self._typed[len(self.lead) :]
        between = other.at + len(other.lead) - self.at - len(self.lead)
        return self._is_in_place and 0 <= between <= len(typed) and b"\n" not in typed[:between]

    def rests(self, cursor: Edit) -> Texts:
        """Returns what the texts that agree with the typed one have behind the cursor, each with its index."""
        if (typed := self.typed(cursor)) is None:
            return []
        closed = self._closed(cursor).decode()  # the text contains the closers, too
        rests = [(index, text[len(typed) :]) for index, text in enumerate(self.texts) if text.startswith(typed)]
        found = ((index, rest.removesuffix(closed)) for index, rest in rests if rest.endswith(closed))
        return [(index, rest) for index, rest in found if rest]

    def sure_rests(self, cursor: Edit, at_least: float) -> Texts:
        """Returns of its rests what is shown unasked: the first text as far as it is right with this probability."""
        rests, typed = self.rests(cursor), self.typed(cursor)
        if not rests or rests[0][0] or typed is None:
            return rests
        rest = self.sure_text(at_least, len(typed))[len(typed) :][: len(rests[0][1])]
        return [(0, rest), *rests[1:]] if rest.strip() else []

    def sure_text(self, at_least: float, typed: int = 0) -> str:
        """Returns the part of the first text that is right with a probability, its first characters being typed."""
        return sure_part(self.texts[0], self.lines, self.words, at_least, typed)

    # --- its fill

    def start(self, fill: Coroutine[Any, Any, None]) -> None:
        """Runs the fill, which tells what it writes."""

        def ended(task: "asyncio.Task[None]") -> None:
            self._changed.set()
            if not task.cancelled() and (error := task.exception()) is not None:
                log.debug("a fill failed: %s", error)  # a request that waits for it raises it

        self._task = asyncio.ensure_future(fill)
        self._task.add_done_callback(ended)

    def wrote(self, text: str) -> None:
        """Takes what the fill has written so far."""
        self.written = text
        self._changed.set()

    def keep(self, texts: tuple[str, ...], why: str = "", of: Snapshot | InfillResult | None = None) -> None:
        """Takes the texts to show, as far as they are written; ``of`` says how likely the first one is right."""
        self.texts, self.why, self.is_kept = texts, why, True
        if of is not None:
            self.lines, self.words = next(iter(of.confidence), ()), next(iter(of.words), ())

    @property
    def is_under_way(self) -> bool:
        """Whether its fill is neither done nor failed nor cancelled."""
        return self._task is not None and not self._task.done()

    def serves(self, cursor: Edit) -> bool:
        """Whether a request may wait for its fill: the user has typed along its text.

        A fill of which nothing was heard may still turn out to agree. One that is heard of and has no text is reading
        its context, which a new fill goes on reading.
        """
        typed = self.typed(cursor) if self.is_under_way else None
        if typed is None or not typed or self.written is None:
            return typed is not None
        return bool(self.written) and not num_off(self.written, typed)

    async def reaches(self, cursor: Edit) -> bool:
        """Waits until it has a text for a cursor; False once it cannot have one.

        Raises the fill's ServiceError.
        """
        while not self.is_ready(cursor):
            if not self.serves(cursor):
                if self._task is not None and self._task.done() and not self._task.cancelled():
                    self._task.result()
                return False
            self._changed.clear()
            await self._changed.wait()
        return True

    def is_ready(self, cursor: Edit) -> bool:
        """Whether it has a text for a cursor, or has ended with none for its place."""
        if not is_blank(self.rests(cursor)):
            return True
        return self.is_kept and not self.is_under_way and (self.is_at(cursor) or bool(self.rests(cursor)))

    def cancel(self) -> None:
        """Ends the fill; what it has read and written is the engine's to use again."""
        if self._task is not None:
            self._task.cancel()


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
        """Records that nothing is shown, so that the next edit is no refusal."""
        self._shown = None

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


def is_blank(texts: Texts) -> bool:
    """Whether there is nothing to show."""
    return not any(text.strip() for _, text in texts)


def num_off(text: str, typed: str) -> int:
    """Returns how many characters were typed since the user has left a text; 0 while one begins with the other."""
    same = num_common(text, typed)
    return len(typed) - same if same < len(text) else 0


def clean(fill: str, newline: str) -> str:
    """Returns a fill as it is kept: with the file's line endings, without trailing blanks; "" for a stuck model's."""
    lines = LINE_END.split(fill.rstrip())
    stuck = any(line.strip() and lines[at : at + REPEATS] == [line] * REPEATS for at, line in enumerate(lines))
    return "" if stuck else newline.join(lines)


def distinct(texts: Iterable[tuple[int, str]], before: str) -> Iterator[tuple[int, str]]:
    """Yields the texts, given with their index, that say something new at the end of the text ``before``.

    They are not blank, differ from all earlier ones, and do not repeat code of the line above in their first line.
    """
    *_, above, head = ["", *before.split("\n")[-2:]]
    seen = {""}
    for index, text in texts:
        line = (head + text.split("\n", 1)[0]).strip()
        repeats = line == above.strip() and _WORD.search(line)
        if text.strip() not in seen and not repeats:
            seen.add(text.strip())
            yield index, text.rstrip()
