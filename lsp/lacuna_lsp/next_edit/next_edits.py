"""The next edit suggestions of one client: at most one at a time, computed ahead after an acceptance."""

import asyncio
import logging
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from lacuna_lsp.client.client_session import ClientSession
from lacuna_lsp.client.errors import UnfinishedError
from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.engine.connection import ServiceConnection
from lacuna_lsp.next_edit.history import History
from lacuna_lsp.next_edit.offers import Offer, ShownOffer, offers, ordered
from lacuna_lsp.next_edit.writing import near
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.next_edit.changes import RecentChange
from lacuna_model.next_edit.following import ELSEWHERE, SURE
from lacuna_model.next_edit.renames import Where
from lacuna_server.wire.protocol import Edit

log = logging.getLogger(__name__)

MAX_BYTES = 1_000_000  # larger documents are not searched
MAX_OTHERS = 8  # other open documents that are searched
DISMISSED = 256
PAUSE_S = 0.5  # without an edit, before the model is asked to write
NOTHING: Mapping[int, str] = {}


@dataclass(slots=True)
class OfferCounts:
    """Counts of next edits: requested, offered, accepted and dismissed."""

    wanted: int = 0
    offered: int = 0
    accepted: int = 0
    dismissed: int = 0


class NextEdits:
    """What follows the user's changes, in all documents of a client."""

    def __init__(self, engine: ServiceConnection, session: ClientSession) -> None:
        self._engine = engine
        self._session = session
        self._histories: dict[str, History] = {}
        self._shown: OrderedDict[str, ShownOffer] = OrderedDict()
        self._dismissed: deque[tuple[str, str, str]] = deque(maxlen=DISMISSED)
        self.counts = OfferCounts()

    def edited(self, before: ClientDocument, after: ClientDocument, edits: Sequence[Edit]) -> None:
        """Records an edit of the user; one that makes an offer's change is its acceptance."""
        history = self._histories.setdefault(after.uri, History())
        history.is_silent = False
        history.stop()
        taken = next((shown for shown in self._shown.values() if _is_taken(shown.offer, before, after)), None)
        if taken is not None:
            self._accept(taken, history, after)
            return
        history.origin = None
        history.edited(before, after, edits)

    def _accept(self, taken: ShownOffer, history: History, document: ClientDocument) -> None:
        """Goes on with the change that the accepted offer came from, and looks for its next place at once."""
        origin = history.origin or history.change(document)
        self._shown.pop(taken.id, None)
        self.counts.accepted += 1
        history.remember(document.path, taken.offer.old, taken.offer.new)
        if origin is not None:
            history.origin = origin
            history.ahead = asyncio.create_task(self._look_ahead(document, origin, history))

    async def _look_ahead(self, document: ClientDocument, origin: RecentChange, history: History) -> list[Offer]:
        """Returns what follows a change in a document; an edit cancels it, and what failed is not kept."""
        try:
            found = await self._find(document, origin, history)
            return found or await self._written(document, document.version, origin, history, history.last_row)
        except UnfinishedError as error:
            log.info("no next edit: %s", error)
            history.ahead = None
            return []

    def forget(self, uri: str) -> None:
        """Drops what is known of a closed document."""
        if (history := self._histories.pop(uri, None)) is not None:
            history.stop()

    async def offer(
        self, document: ClientDocument, row: int, *, others: bool = False, told: Mapping[int, str] = NOTHING
    ) -> ShownOffer | None:
        """Returns the next edit for a cursor in a line of a document, or None.

        ``others``: it may be one of another open document of the language. ``told`` are messages of compilers and
        linters by line.
        """
        self.counts.wanted += 1
        settings, history = self._session.settings, self._histories.get(document.uri)
        if not settings.enabled or not settings.next_edit or document.languages & set(settings.disabled_languages):
            return None
        if history is None or history.erasing or history.is_silent or document.size > MAX_BYTES:
            return None
        change = history.origin or history.change(document)
        if change is None:
            return None
        began, version, ahead = time.monotonic(), document.version, history.ahead
        found = await (_ended(ahead) if ahead is not None else self._find(document, change, history, told))
        if self._session.is_stale(document, version):
            return None
        kept = self._not_dismissed(found, row)
        if not kept and others:
            kept = self._not_dismissed(await self._elsewhere(document, change), row)
        if not kept and ahead is None:
            try:
                kept = self._not_dismissed(await self._written(document, version, change, history, row), row)
            except UnfinishedError as error:
                log.info("no next edit: %s", error)
        log.debug("next edit: %d places in %.0f ms", len(kept), (time.monotonic() - began) * 1e3)
        return self._show(kept[0]) if kept else None

    def _not_dismissed(self, found: Sequence[Offer], row: int) -> list[Offer]:
        return ordered([one for one in found if one.key not in self._dismissed], row)

    async def _written(
        self, document: ClientDocument, version: int, change: RecentChange, history: History, row: int
    ) -> list[Offer]:
        """Returns what the model is sure of near a change, or nothing once the document has changed meanwhile.

        Raises UnfinishedError where the model does not answer.
        """
        if self._session.is_stale(document, version):
            return []
        if history.writing is not None:
            history.writing.cancel()

        async def wait() -> list[Offer]:
            await asyncio.sleep(PAUSE_S)
            return await near(self._engine, document, change, history.past, row)

        history.writing = task = asyncio.create_task(wait())
        try:
            return [one for one in await _ended(task) if one.probability >= SURE]
        finally:
            task.cancel()

    async def _find(
        self, document: ClientDocument, change: RecentChange, history: History, told: Mapping[int, str] = NOTHING
    ) -> list[Offer]:
        """Returns what follows a change in a document: the last one, or the one that its places were offered for."""
        where: Where = "here" if history.origin is None else "later"
        text, past = document.text.decode(), history.past
        try:
            return await asyncio.to_thread(offers, change, document.uri, text, past, where=where, told=told)
        except UnparsableError as error:
            log.info("no next edit: %s", error)
            return []

    async def _elsewhere(self, document: ClientDocument, change: RecentChange) -> list[Offer]:
        """Returns what follows a change in the other open documents of its language."""
        found: list[tuple[ClientDocument, int, list[Offer]]] = []
        every = list(self._session.documents.values())
        alike = [one for one in every if one.uri != document.uri and one.language == document.language]
        for other in alike[:MAX_OTHERS]:
            if other.size <= MAX_BYTES:
                version, text = other.version, other.text.decode()
                places = await asyncio.to_thread(
                    offers, change, other.uri, text, (), where="elsewhere", least=ELSEWHERE
                )
                found.append((other, version, places))
        # Some may have been edited or closed meanwhile.
        current = (places for other, version, places in found if not self._session.is_stale(other, version))
        return list(chain.from_iterable(current))

    def _show(self, offer: Offer) -> ShownOffer | None:
        """Returns an offer as it is shown, None where its document has been closed."""
        document = self._session.documents.get(offer.uri)
        if document is None:
            return None
        shown = ShownOffer(uuid.uuid4().hex, offer, document.version)
        self._shown[shown.id] = shown
        while len(self._shown) > MAX_OTHERS:
            self._shown.popitem(last=False)
        self.counts.offered += 1
        return shown

    def dismiss(self, id: str) -> None:
        """Never offers an edit again, and nothing else until the next edit."""
        if (shown := self._shown.pop(id, None)) is None:
            return
        self.counts.dismissed += 1
        self._dismissed.append(shown.offer.key)
        for history in self._histories.values():
            history.is_silent = True


async def _ended(task: asyncio.Task[list[Offer]]) -> list[Offer]:
    """Waits for a task that an edit may cancel; returns its offers, or none then."""
    await asyncio.wait({task})
    return [] if task.cancelled() else task.result()


def _is_taken(offer: Offer, before: ClientDocument, after: ClientDocument) -> bool:
    """Whether a document became what an offer would make of it."""
    if offer.uri != after.uri:
        return False
    lines = before.text.decode().splitlines(keepends=True)
    if "".join(lines[offer.row : offer.end_row]) != offer.old:
        return False
    made = "".join([*lines[: offer.row], offer.new, *lines[offer.end_row :]])
    return made == after.text.decode()
