"""The next edit suggestions of one client: at most one at a time."""

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial

from lsprotocol import types

from lacuna_lsp.client.client_session import ClientSession
from lacuna_lsp.connection import ServiceConnection
from lacuna_lsp.document import ClientDocument
from lacuna_lsp.offers import Offer, ShownOffer, near, offers
from lacuna_model.core.params import PastChange
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.languages.registry import language_for
from lacuna_model.next_edit.changes import RecentChange
from lacuna_model.next_edit.following import SURE
from lacuna_model.next_edit.renames import Where
from lacuna_server.wire.protocol import Edit, ServiceError

log = logging.getLogger(__name__)

MAX_BYTES = 1_000_000  # larger documents are not searched
MAX_OTHERS = 8  # other open documents that are searched
DISMISSED = 256
PAUSE_S = 0.5  # without an edit, before the model is asked to write
NEAR_ROWS = 2  # an edit so many lines away from the last one belongs to the same change
REMEMBERED = 8


class History:
    """The changes of one document, the newest last, and what is looked for after it.

    ``origin`` is the change whose places are offered one after the other, ``source`` the uri of the document in which
    it was made, and ``writing`` what the model writes there, until an edit. While it ``is_silent``, nothing is offered
    until the next edit. While the user is ``erasing``, nothing is offered either.
    """

    def __init__(self) -> None:
        self._before: ClientDocument | None = None
        self._rows = (0, 0)
        self._past: deque[PastChange] = deque(maxlen=REMEMBERED)
        self.erasing = False
        self.origin: RecentChange | None = None
        self.source = ""
        self.is_silent = False
        self.writing: asyncio.Task[list[Offer]] | None = None

    def stop(self) -> None:
        """Lets the model write nothing any more."""
        if self.writing is not None:
            self.writing.cancel()

    def edited(self, before: ClientDocument, after: ClientDocument, edits: Sequence[Edit]) -> None:
        """Records edits, each to the result of the previous one, that led from one text to another."""
        for edit in edits:
            removed = before.between(edit.start, edit.end).decode(errors="ignore") if len(edits) == 1 else ""
            # A character or blanks, as by the keys that erase while one types.
            few = "\n" not in removed and (len(removed) <= 1 or not removed.strip())
            self.erasing = few and not edit.text
            end = min(edit.start + len(edit.text.encode()), after.size)
            rows = after.position(min(edit.start, after.size)).line, after.position(end).line
            first, last = self._rows
            if self._before is None or rows[0] > last + NEAR_ROWS or rows[1] < first - NEAR_ROWS:
                self._close(before)
                self._before, self._rows = before, rows
            else:
                self._rows = min(first, rows[0]), max(last, rows[1])

    def _close(self, text: ClientDocument) -> None:
        """Remembers the change that ends here; ``text`` is the document behind it."""
        change = self.change(text)
        if change is not None:
            self._past.append(PastChange(text.path, *change.lines))

    def change(self, current: ClientDocument) -> RecentChange | None:
        """Returns the change that the user makes now, or None."""
        if self._before is None:
            return None
        language = language_for(current.path, current.language)
        return RecentChange.at(self._before.text.decode(), current.text.decode(), self._rows[1], language)

    def remember(self, path: str, old: str, new: str) -> None:
        """Adds a change of lines that was made at once, such as an accepted offer."""
        self._past.append(PastChange(path, old.strip(), new.strip()))

    def where(self, uri: str) -> Where:
        """Where its document, of this uri, lies to the change that is followed."""
        if self.origin is None:
            return "here"
        return "later" if self.source == uri else "elsewhere"

    @property
    def past(self) -> tuple[PastChange, ...]:
        """The finished changes."""
        return tuple(self._past)


class NextEdits:
    """What follows the user's changes, in all documents of a client."""

    def __init__(self, engine: ServiceConnection, session: ClientSession) -> None:
        self._engine = engine
        self._session = session
        self._histories: dict[str, History] = {}
        self._shown: ShownOffer | None = None
        self._dismissed: deque[tuple[str, str, str]] = deque(maxlen=DISMISSED)

    def edited(self, before: ClientDocument, after: ClientDocument, edits: Sequence[Edit]) -> None:
        """Records an edit of the user; one that makes an offer's change is its acceptance."""
        history = self._histories.setdefault(after.uri, History())
        history.is_silent = False
        history.stop()
        if self._shown is not None and _is_taken(self._shown.offer, before, after):
            self._accept(self._shown, history, after)
            return
        history.origin, history.source = None, ""
        history.edited(before, after, edits)

    def _accept(self, taken: ShownOffer, history: History, document: ClientDocument) -> None:
        """Goes on with the change that the accepted offer came from."""
        self._shown = None
        history.erasing = False
        history.remember(document.path, taken.offer.old, taken.offer.new)
        if taken.source != document.uri:
            history.origin, history.source = taken.change, taken.source
        elif history.origin is None:
            history.origin, history.source = history.change(document), document.uri

    def forget(self, uri: str) -> None:
        """Drops what is known of a closed document."""
        if (history := self._histories.pop(uri, None)) is not None:
            history.stop()

    async def offer(
        self,
        document: ClientDocument,
        row: int,
        *,
        invoked: bool = False,
        others: bool = False,
        told: Mapping[int, str] | None = None,
    ) -> ShownOffer | None:
        """Returns the next edit for a cursor in a line of a document, or None.

        ``invoked``: the user has asked for it. ``others``: it may be one of another open document of the language.
        ``told`` are messages of compilers and linters by line.
        """
        settings, history = self._session.settings, self._histories.get(document.uri)
        if not settings.enabled or not settings.next_edit or document.languages & set(settings.disabled_languages):
            return None
        if self._session.snoozed_s and not invoked:
            return None
        if history is None or history.erasing or history.is_silent or document.size > MAX_BYTES:
            return None
        change = history.origin or history.change(document)
        if change is None:
            return None
        where, version = history.where(document.uri), document.version
        sources = [partial(self._by_rules, change, document, where, history.past, told)]
        if others:
            sources.append(partial(self._elsewhere, change, document))
        if where != "elsewhere":
            sources.append(partial(self._written, change, document, history, row))
        source = history.source or document.uri
        for find in sources:
            found = await find()
            if self._session.is_stale(document, version):
                return None
            kept = [one for one in found if one.key not in self._dismissed]
            if kept:  # the next one below the cursor, else the last one above it
                nearest_one = min(kept, key=lambda offer: (offer.row < row, abs(offer.row - row)))
                return self._show(nearest_one, change, source)
        return None

    async def _by_rules(
        self,
        change: RecentChange,
        document: ClientDocument,
        where: Where,
        past: Sequence[PastChange] = (),
        told: Mapping[int, str] | None = None,
    ) -> list[Offer]:
        """Returns what follows a change in a document: the last one, or the one that its places were offered for."""
        try:
            return await asyncio.to_thread(
                offers, change, document.uri, document.text.decode(), past, where=where, told=told
            )
        except UnparsableError as error:
            log.info("no next edit: %s", error)
            return []

    async def _elsewhere(self, change: RecentChange, document: ClientDocument) -> list[Offer]:
        """Returns what follows a change in the other open documents of its language."""
        others = [one for one in self._session.documents.values() if one.uri != document.uri]
        alike = [one for one in others if one.language == document.language and one.size <= MAX_BYTES]
        return [offer for one in alike[:MAX_OTHERS] for offer in await self._by_rules(change, one, "elsewhere")]

    async def _written(self, change: RecentChange, document: ClientDocument, history: History, row: int) -> list[Offer]:
        """Returns what the model is sure of near a change, nothing where it does not answer before the next edit."""
        history.stop()

        async def wait() -> list[Offer]:
            await asyncio.sleep(PAUSE_S)
            return await near(self._engine, document, change, history.past, row)

        history.writing = task = asyncio.create_task(wait())
        try:
            await asyncio.wait({task})
            return [] if task.cancelled() else [one for one in task.result() if one.probability >= SURE]
        except ServiceError as error:
            log.info("no next edit: %s", error)
            return []
        finally:
            task.cancel()

    def _show(self, offer: Offer, change: RecentChange, source: str) -> ShownOffer | None:
        """Returns an offer as it is shown, None where its document was closed or its lines edited meanwhile."""
        document = self._session.documents.get(offer.uri)
        if document is None or document.rows(offer.row, offer.end_row) != offer.old:
            return None
        self._shown = ShownOffer(uuid.uuid4().hex, offer, document.version, change, source)
        return self._shown

    def dismiss(self, id: str) -> None:
        """Never offers an edit again, and nothing else until the next edit."""
        if self._shown is None or self._shown.id != id:
            return
        self._dismissed.append(self._shown.offer.key)
        self._shown = None
        for history in self._histories.values():
            history.is_silent = True


def _is_taken(offer: Offer, before: ClientDocument, after: ClientDocument) -> bool:
    """Whether a document became what an offer would make of it."""
    if offer.uri != after.uri:
        return False
    if before.rows(offer.row, offer.end_row) != offer.old:
        return False
    start = before.offset(types.Position(offer.row, 0))
    made = before.between(0, start) + offer.new.encode() + before.text[start + len(offer.old.encode()) :]
    return made == after.text
