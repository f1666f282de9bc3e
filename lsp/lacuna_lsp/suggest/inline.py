"""Inline completion: gets suggestions for a cursor from the cache or, after the debounce, from the engine."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from lacuna_lsp.client.errors import UnfinishedError
from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.engine.connection import ServiceConnection
from lacuna_lsp.suggest import polish, triggers
from lacuna_lsp.suggest.debounce import Debounce
from lacuna_lsp.suggest.latest import Latest
from lacuna_lsp.suggest.polish import Habits
from lacuna_lsp.suggest.read_ahead import Above, ReadAhead
from lacuna_lsp.suggest.suggestions import CursorPlace, Suggestion, SuggestionMatch, Suggestions, distinct, typed_since
from lacuna_lsp.suggest.triggers import Cursor
from lacuna_lsp.suggest.under_way import FillUnderWay, UnderWay
from lacuna_model.core.params import DecodeOptions, FillGaps, Snapshot, Snippet
from lacuna_model.core.regions import at_cursor
from lacuna_server.wire.protocol import Edit, ServiceError
from lacuna_server.wire.settings import Settings

log = logging.getLogger(__name__)

AROUND = 6000  # bytes on each side of the cursor, used to identify a place and to trim suggestions
PATIENCE_MS = 30_000  # the least time limit of a request that the user made
_UNFINISHED = {
    "deadline": "the model wrote nothing within {:g} s: it still reads the file, or the machine is busy",
    "cancelled": "the engine gave it up for a newer request",
}
_LINE_END = re.compile(r"\r\n|\r|\n")
_FIRST_LINE = re.compile(r"(\s*\S[^\r\n]*)(\r\n|\r|\n)")  # the first line with text, once it has ended


@dataclass(frozen=True, slots=True)
class Request:
    """A request for suggestions at a byte offset of a document.

    ``selected`` is the selected entry of a completion list; it counts as already inserted. ``invoked`` means that the
    user asked explicitly. ``above`` are the texts that precede the document, such as the cells above it in a notebook.
    """

    document: ClientDocument
    offset: int
    invoked: bool
    selected: Edit | None = None
    above: tuple[Snippet, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """A suggestion: ``text`` replaces the bytes ``start``..``end``; the other fields name the engine's fill."""

    text: str
    start: int
    end: int
    request: str
    candidate: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Suggestions, best first; where there are none, ``why`` says the reason, unless the client knows it."""

    items: list[Item] = field(default_factory=list)
    why: str = ""


@dataclass(slots=True)
class SuggestionCounts:
    """Counts of suggestions: wanted, served from the cache, requested from the engine, and withheld.

    ``unsure`` counts suggestions whose confidence was too low to show them without a request.
    """

    wanted: int = 0
    cached: int = 0
    asked: int = 0
    unsure: int = 0


class Inline:
    """Makes the suggestions of one client."""

    def __init__(
        self,
        engine: ServiceConnection,
        suggestions: Suggestions,
        settings: Callable[[], Settings],
        debounce: Debounce,
        latest: Latest,
        under_way: UnderWay,
        read_ahead: ReadAhead,
        say: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._suggestions = suggestions
        self._settings = settings
        self._debounce = debounce
        self._latest = latest
        self._under_way = under_way
        self._read_ahead = read_ahead
        self._say = say
        self.counts = SuggestionCounts()

    async def suggest(self, request: Request) -> Answer:
        """Returns suggestions for a cursor.

        There are none if a suggestion would not help, the engine has none or is not ready, or a newer request of the
        same document replaced this one.
        """
        document = request.document
        turn = self._read_ahead.moved()
        try:
            return await self._latest.run(document.uri, self._suggested(request), superseded=Answer())
        except ServiceError as error:
            log.info("no suggestion: %s", error)
            if error.code == "too_large":
                self._say(f"no suggestions in {document.path}: {error}")
            return Answer(why="" if error.code == "loading" else str(error))
        except UnfinishedError as error:
            log.info("no suggestion: %s", error)
            return Answer(why=str(error))
        finally:
            if turn == self._read_ahead.turn:  # otherwise the cursor moved or another request began
                self.rests(document, request.offset, lambda: request.above)

    def rests(self, document: ClientDocument, offset: int, above: Above) -> None:
        """Reads ahead for a cursor at a byte offset, if the settings allow it; ``above`` as for :class:`ReadAhead`."""
        settings = self._settings()
        if settings.enabled and settings.automatic and settings.read_ahead:
            self._read_ahead.rests(document, offset, above)

    async def _suggested(self, request: Request) -> Answer:
        settings = self._settings()
        if not settings.enabled or not (request.invoked or settings.automatic):
            return Answer()
        if off := request.document.languages & set(settings.disabled_languages):
            return Answer(why=f"suggestions are off for {min(off)}")
        place, cursor = look(request)
        if (rejected := self._suggestions.typed(place)) is not None:
            self._engine.feedback(rejected, "rejected")
        wanted = triggers.shape(cursor, settings.multiline, invoked=request.invoked)
        if wanted == "none":
            return Answer(why="the cursor is inside a word")
        self.counts.wanted += 1
        match = self._suggestions.at(place)
        if match is None or self._is_outdated(match, request, place) or self._goes_on(match):
            match = await self._written(request, place, cursor.tail, multiline=wanted == "block")
        else:
            self.counts.cached += 1
        if self._is_unsure(match.suggestion, request):
            self.counts.unsure += 1
            match = SuggestionMatch(match.suggestion, ())
        items = self._items(request, place, match)
        return Answer(items, "" if items else match.suggestion.why or "what would stand here stands here already")

    def _is_outdated(self, match: SuggestionMatch, request: Request, place: CursorPlace) -> bool:
        """Whether to ask the engine again: for more candidates, for any, or after typing where one was withheld."""
        suggestion = match.suggestion
        if request.invoked:
            return not suggestion.several or _is_blank(match)
        return self._is_unsure(suggestion, request) and suggestion.place != place

    def _is_unsure(self, suggestion: Suggestion, request: Request) -> bool:
        """Whether a suggestion is too unlikely to be shown; its odds are half in a line where one was refused."""
        sure = suggestion.confidence
        if self._suggestions.follows_refusal(suggestion.place):
            sure = sure / (2 - sure)
        return not request.invoked and sure < self._settings().min_confidence

    async def _written(self, request: Request, place: CursorPlace, tail: str, *, multiline: bool) -> SuggestionMatch:
        """Waits for the fill under way that serves a place, or for a new one."""
        while True:
            fill = self._under_way.find(place, several=request.invoked)
            if fill is None:
                if self._settings().debounce and not request.invoked:
                    await asyncio.sleep(self._debounce.delay() / 1e3)
                self.counts.asked += 1
                fill = FillUnderWay(place, several=request.invoked)
                self._under_way.start(fill, lambda new: self._fill(new, request, tail, multiline=multiline))
            if (match := await fill.served(place, partial(self._kept, fill, place))) is not None:
                return match

    def _kept(self, fill: FillUnderWay, place: CursorPlace) -> SuggestionMatch | None:
        """What a fill has kept for a place."""
        match = self._suggestions.at(place)
        mine = match is not None and match.suggestion.request == fill.id and not self._goes_on(match)
        return match if mine else None

    def _goes_on(self, match: SuggestionMatch) -> bool:
        """Whether all of a suggestion that is kept so far is typed, and its fill under way will tell how it goes on."""
        return _is_blank(match) and self._under_way.has(match.suggestion.request)

    async def _fill(self, fill: FillUnderWay, request: Request, tail: str, *, multiline: bool) -> None:
        """Fills a place; keeps the first line as soon as it is written, and later the whole fill.

        Raises UnfinishedError, and keeps nothing, where the fill ended before the model was done and has no text.
        """
        settings, place = self._settings(), fill.place
        typed = request.selected
        at = request.offset if typed is None else typed.start + len(typed.text.encode())
        region = at_cursor(at, tail, settings.max_tokens, settings.max_lines if multiline else 1)
        habits = Habits.of(place.before + place.after, request.document.newline)
        deadline_ms = settings.deadline_ms
        if request.invoked and deadline_ms:
            deadline_ms = max(deadline_ms, PATIENCE_MS)
        patient = request.invoked or not deadline_ms
        began = time.monotonic()

        def cleaned(fills: Sequence[str]) -> tuple[str, ...]:
            return tuple(polish.clean(text, habits, max_lines=region.max_lines) for text in fills)

        def keep(texts: tuple[str, ...], confidence: Sequence[Sequence[float]], why: str = "") -> Suggestion:
            sure = next((lines[0] for lines in confidence if lines), 1.0)  # an older engine reports none
            suggestion = Suggestion(place, texts, fill.id, fill.several, sure, why)
            self._suggestions.keep(suggestion)
            if not fill.has_line:
                self._debounce.answered((time.monotonic() - began) * 1e3)
            return suggestion

        def told(seen: Snapshot) -> None:
            text = next(iter(seen.written), "")
            line = None if fill.several else _FIRST_LINE.match(text)
            if line is not None and not fill.has_line:
                first = keep(cleaned([line[1]]), seen.confidence)
                if self._is_unsure(first, request):
                    fill.cancel()  # nobody sees the other lines
            fill.wrote(text, has_line=line is not None)

        filled = await self._engine.infill(
            request.document,
            [region],
            id=fill.id,
            task=FillGaps(
                candidates=settings.candidates if fill.several else 1,
                open=True,
                due_ms=0 if patient else self._debounce.due(),
            ),
            options=DecodeOptions(deadline_ms=deadline_ms),
            snippets=request.above,
            typed=typed,
            told=told,
        )
        texts = cleaned([filled.fills[0], *(other[0] for other in filled.alternatives)])
        if filled.status == "no_valid_fill":
            keep((), (), filled.message or "nothing was found that fits")
        elif filled.status == "ok" or (filled.status == "deadline" and any(texts)):
            keep(texts, filled.confidence, "" if any(texts) else "the model writes nothing here")
        else:
            raise UnfinishedError(_UNFINISHED[filled.status].format(deadline_ms / 1e3))
        self._read_ahead.hurries = filled.stats.unread > 0

    def _items(self, request: Request, place: CursorPlace, match: SuggestionMatch) -> list[Item]:
        suggestion, selected = match.suggestion, request.selected
        start, end = (request.offset, request.offset) if selected is None else (selected.start, selected.end)
        typed = typed_since(suggestion.place, place) or ""
        fitted = [polish.fit(text, place.before, place.after, typed) for _, text in match.texts]
        chosen = [
            (match.texts[index][0], text)
            for index, text in distinct(fitted)
            if request.invoked or not self._suggestions.rejected(place, text)
        ]
        self._suggestions.show(place, [text for _, text in chosen], suggestion.request)
        lead = selected.text if selected is not None else ""
        return [Item(lead + text, start, end, suggestion.request, candidate) for candidate, text in chosen]


def _is_blank(match: SuggestionMatch) -> bool:
    return not any(text.strip() for _, text in match.texts)


def look(request: Request) -> tuple[CursorPlace, Cursor]:
    """Returns the place and the line of a cursor, with the selected completion inserted."""
    document, selected = request.document, request.selected
    start, end = (request.offset, request.offset) if selected is None else (selected.start, selected.end)
    before = document.before(start, AROUND).decode(errors="ignore") + (selected.text if selected else "")
    after = document.after(end, AROUND).decode(errors="ignore")
    *lines, head = _LINE_END.split(before)
    above = next((line for line in reversed(lines) if line.strip()), "")
    return CursorPlace(document.uri, before, after), Cursor(head, _LINE_END.split(after, maxsplit=1)[0], above)
