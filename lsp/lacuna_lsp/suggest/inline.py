"""Inline completion: takes suggestions for a cursor from what is written already, or asks the engine for a fill."""

import asyncio
import logging
import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from lacuna_lsp.client.client_session import ClientSession
from lacuna_lsp.client.protocol import ToldSignature
from lacuna_lsp.connection import ServiceConnection
from lacuna_lsp.document import ClientDocument, without_common_start
from lacuna_lsp.suggest import triggers
from lacuna_lsp.suggest.items import Item, Origin
from lacuna_lsp.suggest.pace import PART, REFUSED, TAKEN, Calmness, Debounce, users_file
from lacuna_lsp.suggest.suggestion import DocumentState, Suggestion, Texts, clean, distinct, is_blank
from lacuna_lsp.suggest.triggers import AT_LEAST
from lacuna_model.core.odds import with_odds
from lacuna_model.core.params import DecodeOptions, FillGaps, InfillResult, ReadContext, Region, Snapshot, Snippet
from lacuna_model.core.regions import at_cursor
from lacuna_model.text.lines import LINE_END, first_of
from lacuna_server.wire.protocol import Edit, FeedbackKind, ServiceError

log = logging.getLogger(__name__)

AROUND = 6000  # bytes on each side of the cursor that say where it is
NEAR = 200  # characters before the cursor that identify a rejection
REMEMBERED = 256
# What is taken of other language servers' answers: so many, and of each so many lines and characters.
MAX_TOLD, MAX_TOLD_LINES, MAX_TOLD_CHARACTERS = 8, 4, 400
TOLD_LINES = 2  # what they say of a line holds for lines so near
PATIENCE_MS = 30_000  # the least time limit of a request that the user made
PATIENT_DUE_MS = 2_000  # when it should have its first line: a context that takes longer to read is read afterwards
# Seconds without typing, cursor moves or requests before the engine reads ahead; the shorter one where the last fill
# had to do without the whole context.
REST_S, SHORT_REST_S = 0.5, 0.02
_LATE = "the model wrote nothing within {:g} s: it still reads the file, or the machine is busy"
ANSWERS: dict[FeedbackKind, float] = {"accepted": TAKEN, "partly_accepted": PART, "rejected": REFUSED}
_FIRST_LINE = re.compile(r"(\s*\S[^\r\n]*)(\r\n|\r|\n)")  # the first line with text, once it has ended


@dataclass(frozen=True, slots=True)
class Request:
    """A request for suggestions at a byte offset of a document.

    ``selected`` is the selected entry of a completion list; it counts as already inserted. ``invoked`` means that the
    user asked explicitly.
    """

    document: ClientDocument
    offset: int
    invoked: bool
    selected: Edit | None = None

    @property
    def replaced(self) -> Edit:
        """The edit that counts as made: that of the selected entry, else an empty one."""
        return self.selected or Edit(self.offset, self.offset, "")


@dataclass(frozen=True, slots=True)
class Answer:
    """Suggestions, best first; where there are none, ``why`` says the reason, unless the client knows it.

    ``held``: there is one, which is too unsure to be shown without a request.
    """

    items: list[Item] = field(default_factory=list)
    why: str = ""
    held: bool = False


class Inline:
    """Makes the suggestions of one client.

    ``counts`` are those of suggestions that were wanted, served again (``cached``) or asked of the engine, and of those
    of which nothing was likely enough to be shown without a request (``unsure``).
    """

    def __init__(self, engine: ServiceConnection, session: ClientSession) -> None:
        self._engine = engine
        self._session = session
        self._debounce = Debounce()
        self.calmness = Calmness(users_file())
        self._states: dict[str, DocumentState] = {}
        self._rejected: deque[tuple[str, str, str]] = deque(maxlen=REMEMBERED)
        self._resting: tuple[ClientDocument, int] | None = None  # where the engine reads ahead, or will
        self._reading: asyncio.Task[None] | None = None
        self._hurries = False  # the last fill had to do without the whole context: there is no time to lose
        self.counts = dict.fromkeys(("wanted", "cached", "asked", "unsure"), 0)

    # --- what happens to documents

    def opened(self, document: ClientDocument) -> None:
        """Takes in a document that the client has opened."""
        self.closed(document.uri)
        self._states[document.uri] = DocumentState(document)
        self.rests(document, 0)

    def edited(self, document: ClientDocument, edits: Sequence[Edit]) -> None:
        """Follows edits of the user: a request for the earlier text ends, and what was suggested moves along."""
        self._debounce.typed(time.monotonic() * 1e3)
        self._states[document.uri].edited(edits)
        if edits:
            self.rests(document, edits[-1].start + len(edits[-1].text.encode()))

    def told(self, uri: str, line: int, told: Sequence[ToldSignature]) -> None:
        """Takes what the editor's other language servers say of the names at a line of a document."""
        if (state := self._states.get(uri)) is not None and self._session.settings.ask_servers:
            state.told = line, [_quoted(one, state.document.path) for one in told[:MAX_TOLD] if one.text.strip()]

    def closed(self, uri: str) -> None:
        """Forgets a document."""
        if (state := self._states.pop(uri, None)) is not None:
            state.cancel()
        if self._resting is not None and self._resting[0].uri == uri:
            self._rest()

    def left_for(self, uri: str) -> None:
        """Ends what goes on in all documents but this one, which the user has moved to ("": none)."""
        self.hide(uri)
        for other in self._others(uri):
            other.cancel()

    def hide(self, except_for: str = "") -> None:
        """Handles a command, or a request in one document: elsewhere nothing is shown or read ahead any more."""
        if self._resting is not None and self._resting[0].uri != except_for:
            self._rest()
        for other in self._others(except_for):
            other.hide()

    def _others(self, uri: str) -> list[DocumentState]:
        return [state for other, state in self._states.items() if other != uri]

    # --- reading ahead, at one place

    def rests(self, document: ClientDocument, offset: int) -> None:
        """Reads ahead for a cursor at a byte offset, if the settings allow it."""
        settings = self._session.settings
        if settings.enabled and settings.automatic and settings.read_ahead and document.uri in self._states:
            self._rest((document, offset))

    def ready(self) -> None:
        """Starts a reading that was postponed because the engine was not ready."""
        self._rest(self._resting)

    def _rest(self, place: tuple[ClientDocument, int] | None = None) -> None:
        """Reads ahead at a place once nothing has happened for a while; without one, stops that."""
        if self._reading is not None:
            self._reading.cancel()
        self._resting = place
        self._reading = asyncio.ensure_future(self._read_ahead(*place)) if place is not None else None

    async def _read_ahead(self, document: ClientDocument, offset: int) -> None:
        await asyncio.sleep(SHORT_REST_S if self._hurries else REST_S)
        region, above = Region(offset, offset), self._session.above(document)
        try:
            await self._engine.infill(document, [region], task=ReadContext(), snippets=above)
            self._hurries = False
        except ServiceError as error:  # no request waits for it
            log.info("nothing is read ahead: %s", error)

    # --- suggestions

    async def suggest(self, request: Request) -> Answer:
        """Returns suggestions for a cursor.

        There are none if a suggestion would not help, the engine has none or is not ready, or an edit or a newer
        request of the same document replaced this one.
        """
        document = request.document
        state = self._states[document.uri]
        self.hide(except_for=document.uri)
        self._rest()
        try:
            answer = await state.newest(
                self._suggested(state, request), then=partial(self.rests, document, request.offset)
            )
            return answer or Answer()
        except ServiceError as error:
            log.info("no suggestion: %s", error)
            if error.code == "too_large":
                self._session.say_once(f"no suggestions in {document.path}: {error}")
            return Answer(why="" if error.code == "loading" else str(error))

    async def _suggested(self, state: DocumentState, request: Request) -> Answer:
        settings = self._session.settings
        if not settings.enabled or not (request.invoked or settings.automatic):
            return Answer(why="suggestions are turned off")
        if off := request.document.languages & set(settings.disabled_languages):
            return Answer(why=f"suggestions are off for {min(off)}")
        if not request.invoked and (why := self._is_off(request)):
            return Answer(why=why)
        cursor = _cursor(request)
        # An entry of a list that is only selected is no word of the user's.
        if request.selected is None and (refused := state.refused(cursor)) is not None:
            self._reject(state, *refused)
            self._engine.feedback(refused[0].id, "rejected")
            self._answered(refused[0], REFUSED)
        before, after = _around(request)
        wanted = triggers.shape(before, after, settings.multiline, invoked=request.invoked)
        if wanted == "none":
            return Answer(why="the cursor is inside a word")
        self.counts["wanted"] += 1
        suggestion = state.find(cursor)
        if suggestion is None or self._is_outdated(state, suggestion, request, cursor):
            suggestion = await self._written(state, request, cursor, multiline=wanted == "block")
        else:
            self.counts["cached"] += 1
        texts, held = suggestion.rests(cursor), False
        if not request.invoked and not is_blank(texts):
            texts = self._sure_rests(state, suggestion, cursor)
            held = is_blank(texts)
            self.counts["unsure"] += held
        items = self._items(state, request, before, suggestion, texts)
        why = "" if items else suggestion.why or "what would stand here stands here already"
        return Answer(items, why, held)

    def _is_outdated(self, state: DocumentState, suggestion: Suggestion, request: Request, cursor: Edit) -> bool:
        """Whether to ask the engine again: for more candidates, for any, or after typing where one was withheld."""
        none = is_blank(suggestion.rests(cursor))
        if none and suggestion.is_under_way:  # all that is written is typed, and the fill will tell how it goes on
            return True
        if request.invoked:
            return none or not suggestion.several
        return not self._sure_rests(state, suggestion, cursor) and not suggestion.is_at(cursor)

    def _sure_rests(self, state: DocumentState, suggestion: Suggestion, cursor: Edit) -> Texts:
        """What of a suggestion is shown unasked behind a cursor."""
        return suggestion.sure_rests(cursor, self._at_least(state, suggestion))

    def _at_least(self, state: DocumentState, suggestion: Suggestion) -> float:
        """Which probability shows a suggestion unasked: that of the dial, moved by the person's answers.

        The odds of a suggestion are half in a line where one was refused.
        """
        settings = self._session.settings
        at_least = AT_LEAST[settings.suggest] if settings.min_confidence is None else settings.min_confidence
        odds = self.calmness.odds(suggestion.kind)
        return with_odds(at_least, (2 if state.follows_refusal(suggestion) else 1) / odds)

    def _is_off(self, request: Request) -> str:
        """Why nothing is suggested unasked at a place; "" where something is."""
        if seconds := self._session.snoozed_s:
            return f"suggestions are snoozed for another {seconds // 60 + 1} min"
        return triggers.why_off(self._session.settings.suggest_in, request.document, request.replaced.start)

    async def _written(self, state: DocumentState, request: Request, cursor: Edit, *, multiline: bool) -> Suggestion:
        """Waits for the fill under way that serves a cursor, or for a new one."""
        while True:
            fill = state.fill
            if fill is None or not fill.serves(cursor) or (request.invoked and not fill.several):
                state.end_fill()
                if self._session.settings.debounce and not request.invoked:
                    await asyncio.sleep(self.calmness.wait_ms(self._debounce.delay()) / 1e3)
                self.counts["asked"] += 1
                document = request.document
                standing = document.between(cursor.start, cursor.end)
                fill = Suggestion(cursor, standing, _kind(document, cursor), several=request.invoked)
                state.start(fill, self._fill(state, fill, request, document.version, multiline=multiline))
            if await fill.reaches(cursor):
                return fill

    async def _fill(
        self, state: DocumentState, fill: Suggestion, request: Request, version: int, *, multiline: bool
    ) -> None:
        """Fills a place; keeps the first line as soon as it is written, and later the whole fill.

        Raises ServiceError, and keeps nothing, where the fill ended before the model was done and has no text.
        """
        document, settings = request.document, self._session.settings
        if document.version != version:
            return  # it was edited before the fill began, and the request has ended
        at = request.replaced.start + len(request.replaced.text.encode())
        region = at_cursor(
            at, first_of(_around(request)[1]), settings.max_tokens, settings.max_lines if multiline else 1
        )
        deadline_ms = settings.deadline_ms
        due_ms = 0
        if deadline_ms and request.invoked:
            deadline_ms, due_ms = max(deadline_ms, PATIENCE_MS), PATIENT_DUE_MS
        elif deadline_ms:
            due_ms = self._debounce.due()
        (line, signatures), began = state.told, time.monotonic()

        def keep(texts: Sequence[str], of: Snapshot | InfillResult, why: str = "") -> None:
            if not fill.is_kept:
                self._debounce.answered((time.monotonic() - began) * 1e3)
            fill.keep(tuple(texts), why, of)

        def told(seen: Snapshot) -> None:
            text = next(iter(seen.written), "")
            ended = None if fill.several or fill.is_kept else _FIRST_LINE.match(text)
            if ended is not None:
                first = clean(ended[1], document.newline)
                keep([first], seen)
                if not request.invoked and fill.sure_text(self._at_least(state, fill)) != first:
                    fill.cancel()  # nobody sees the other lines
            fill.wrote(LINE_END.sub(document.newline, text))

        filled = await self._engine.infill(
            document,
            [region],
            id=fill.id,
            task=FillGaps(settings.candidates if fill.several else 1, open=True, due_ms=due_ms),
            options=DecodeOptions(deadline_ms=deadline_ms),
            snippets=self._session.above(document),
            signatures=signatures if abs(document.position(request.offset).line - line) <= TOLD_LINES else (),
            typed=request.selected,
            told=told,
        )
        texts = [clean(fills[0], document.newline) for fills in (filled.fills, *filled.alternatives)]
        if filled.status == "no_valid_fill":
            keep((), filled, filled.message or "nothing was found that fits")
        elif filled.status == "ok" or (filled.status == "deadline" and any(texts)):
            keep(texts, filled, "" if any(texts) else "the model writes nothing here")
        else:
            raise ServiceError("overloaded", _LATE.format(deadline_ms / 1e3))
        self._hurries = filled.stats.unread > 0

    def _items(
        self, state: DocumentState, request: Request, before: str, suggestion: Suggestion, texts: Texts
    ) -> list[Item]:
        replaced = request.replaced
        chosen = [
            (index, text)
            for index, text in distinct(texts, before)
            if request.invoked or self._key(state, suggestion, index) not in self._rejected
        ]
        typed = suggestion.typed(_cursor(request)) or ""
        state.show(suggestion, [(index, typed + text) for index, text in chosen])
        return [
            Item(replaced.text + text, replaced.start, replaced.end, Origin(suggestion.id, index))
            for index, text in chosen
        ]

    def feedback(self, kind: FeedbackKind, origin: Origin | None) -> None:
        """Reports the outcome of a suggestion to the engine; a rejected text is not suggested again at its place."""
        if origin is None:
            return
        index = origin.candidate
        self._engine.feedback(origin.request, kind, candidate=index)
        for state in self._states.values():
            if (suggestion := state.of(origin.request)) is not None and index < len(suggestion.texts):
                if kind in ANSWERS and not suggestion.is_answered:
                    self._answered(suggestion, ANSWERS[kind])
                if kind in ("accepted", "rejected"):
                    state.answered(suggestion, refused=kind == "rejected")
                if kind == "rejected":
                    self._reject(state, suggestion, [index])

    def _answered(self, suggestion: Suggestion, answer: float) -> None:
        """Takes in what became of a suggestion: one answer, also where it is taken part by part."""
        self.calmness.answered(suggestion.kind, answer, again=suggestion.is_partly_taken)
        suggestion.is_partly_taken |= answer == PART

    def _reject(self, state: DocumentState, suggestion: Suggestion, indices: Sequence[int]) -> None:
        self._rejected += [self._key(state, suggestion, index) for index in indices]

    def _key(self, state: DocumentState, suggestion: Suggestion, index: int) -> tuple[str, str, str]:
        """What identifies a text and the place that it was made for."""
        before = (state.document.before(suggestion.at, AROUND) + suggestion.lead).decode(errors="ignore")
        return state.document.uri, before[-NEAR:], suggestion.texts[index].strip()


def _quoted(told: ToldSignature, path: str) -> Snippet:
    """What a language server says of a name, as the model reads it."""
    text = "".join(f"{line.rstrip()}\n" for line in told.text.strip().splitlines()[:MAX_TOLD_LINES])
    return Snippet(path, text[:MAX_TOLD_CHARACTERS], f"what {told.server} says of `{told.name}`", 1.0)


def _kind(document: ClientDocument, cursor: Edit) -> str:
    """What a person's answers to a suggestion are kept under: a language, and whether a line begins with it."""
    return f"{min(document.languages)} {'in line' if document.head(cursor.start).strip() else 'line start'}"


def _cursor(request: Request) -> Edit:
    """The cursor, as suggestions take it: what was typed of the selected entry is no part of its edit."""
    replaced = request.replaced
    return without_common_start(replaced, request.document.between(replaced.start, replaced.end))


def _around(request: Request) -> tuple[str, str]:
    """Returns the text before and after a cursor, with the selected completion inserted."""
    document, replaced = request.document, request.replaced
    before = document.before(replaced.start, AROUND).decode(errors="ignore") + replaced.text
    return before, document.after(replaced.end, AROUND).decode(errors="ignore")
