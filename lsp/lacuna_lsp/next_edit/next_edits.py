"""The next edit suggestions of one client: at most one at a time, computed ahead after an acceptance."""

import asyncio
import logging
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from lacuna_lsp.client.errors import UnfinishedError
from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.engine.connection import ServiceConnection
from lacuna_lsp.next_edit.history import History
from lacuna_lsp.next_edit.offers import Offer, offers, ordered
from lacuna_lsp.next_edit.writing import near
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.next_edit.changes import RecentChange
from lacuna_model.next_edit.following import ELSEWHERE, SURE
from lacuna_model.next_edit.renames import Where
from lacuna_server.wire.protocol import Edit
from lacuna_server.wire.settings import Settings

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


@dataclass(frozen=True, slots=True)
class ShownOffer:
    """An offer that the client has: its id, and the version of its document."""

    id: str
    offer: Offer
    version: int


class NextEdits:
    """What follows the user's changes, in all documents of a client."""

    def __init__(
        self,
        engine: ServiceConnection,
        documents: Callable[[], Sequence[ClientDocument]],
        settings: Callable[[], Settings],
    ) -> None:
        self._engine = engine
        self._documents = documents
        self._settings = settings
        self._histories: dict[str, History] = {}
        # By document: the change whose places are offered one after the other.
        self._origins: dict[str, RecentChange] = {}
        self._silent: set[str] = set()  # documents in which nothing is offered until the next edit
        self._shown: OrderedDict[str, ShownOffer] = OrderedDict()
        self._dismissed: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._ahead: dict[tuple[str, int], asyncio.Task[list[Offer]]] = {}
        self._writing: dict[str, asyncio.Task[list[Offer]]] = {}  # by document: what the model is writing
        self.counts = OfferCounts()

    def edited(self, before: ClientDocument, after: ClientDocument, edits: Sequence[Edit]) -> None:
        """Records an edit of the user; one that makes an offer's change is its acceptance."""
        uri = after.uri
        history = self._histories.setdefault(uri, History())
        self._silent.discard(uri)
        self._stop(uri)
        taken = next((shown for shown in self._shown.values() if _is_taken(shown.offer, before, after)), None)
        if taken is not None:
            self._accept(taken, after)
            return
        self._origins.pop(uri, None)
        history.edited(before, after, edits)

    def _accept(self, taken: ShownOffer, document: ClientDocument) -> None:
        """Goes on with the change that the accepted offer came from, and looks for its next place at once."""
        uri = document.uri
        origin = self._origins.get(uri) or self._histories[uri].change(document)
        self._shown.pop(taken.id, None)
        self.counts.accepted += 1
        history = self._histories[uri]
        history.remember(taken.offer.old, taken.offer.new)
        if origin is not None:
            self._origins[uri] = origin
            looking = self._look_ahead(document, document.snapshot(), origin, history)
            self._ahead[uri, document.version] = asyncio.create_task(looking)

    async def _look_ahead(
        self, document: ClientDocument, now: ClientDocument, origin: RecentChange, history: History
    ) -> list[Offer]:
        """Returns what follows a change in a document as it is ``now``; what failed is not kept."""
        try:
            found = await self._find(now, origin, history)
            return found or await self._written(document, now.version, origin, history, history.last_row)
        except UnfinishedError as error:
            log.info("no next edit: %s", error)
            self._ahead.pop((now.uri, now.version), None)
            return []

    def forget(self, uri: str) -> None:
        """Drops what is known of a closed document."""
        self._stop(uri)
        for kept in (self._histories, self._origins):
            kept.pop(uri, None)
        self._silent.discard(uri)

    def _stop(self, uri: str) -> None:
        for key in [key for key in self._ahead if key[0] == uri]:
            self._ahead.pop(key).cancel()
        if (task := self._writing.pop(uri, None)) is not None:
            task.cancel()

    async def offer(
        self, document: ClientDocument, row: int, *, others: bool = False, told: Mapping[int, str] = NOTHING
    ) -> ShownOffer | None:
        """Returns the next edit for a cursor in a line of a document, or None.

        ``others``: it may be one of another open document of the language. ``told`` are messages of compilers and
        linters by line.
        """
        self.counts.wanted += 1
        settings, uri = self._settings(), document.uri
        history = self._histories.get(uri)
        if not settings.enabled or not settings.next_edit or document.languages & set(settings.disabled_languages):
            return None
        if history is None or history.erasing or uri in self._silent or document.size > MAX_BYTES:
            return None
        origin = self._origins.get(uri)
        change = origin or history.change(document)
        if change is None:
            return None
        began, version = time.monotonic(), document.version
        ahead = self._ahead.get((uri, version))
        found = await (_ended(ahead) if ahead is not None else self._find(document.snapshot(), origin, history, told))
        if not self._is_current(document, version):
            return None
        kept = self._kept(found, row)
        if not kept and others:
            kept = self._kept(await self._elsewhere(document, change), row)
        if not kept and ahead is None:
            try:
                kept = self._kept(await self._written(document, version, change, history, row), row)
            except UnfinishedError as error:
                log.info("no next edit: %s", error)
        log.debug("next edit: %d places in %.0f ms", len(kept), (time.monotonic() - began) * 1e3)
        return self._show(kept[0]) if kept else None

    def _kept(self, found: Sequence[Offer], row: int) -> list[Offer]:
        return ordered([one for one in found if one.key not in self._dismissed], row)

    async def _written(
        self, document: ClientDocument, version: int, change: RecentChange, history: History, row: int
    ) -> list[Offer]:
        """Returns what the model is sure of near a change, or nothing once the document has changed meanwhile.

        Raises UnfinishedError where the model does not answer.
        """
        if not self._is_current(document, version):
            return []
        if (earlier := self._writing.get(document.uri)) is not None:
            earlier.cancel()

        async def wait() -> list[Offer]:
            await asyncio.sleep(PAUSE_S)
            return await near(self._engine, document, change, history.past, row)

        task = asyncio.create_task(wait())
        self._writing[document.uri] = task
        try:
            return [one for one in await _ended(task) if one.probability >= SURE]
        finally:
            task.cancel()

    async def _find(
        self,
        document: ClientDocument,
        origin: RecentChange | None,
        history: History,
        told: Mapping[int, str] = NOTHING,
    ) -> list[Offer]:
        """Returns what follows the change of a document, or the change ``origin`` that its places were offered for."""
        text = document.text.decode()

        def look() -> list[Offer]:
            change = origin or history.change(document)
            if change is None:
                return []
            where: Where = "here" if origin is None else "later"
            return offers(change, document.uri, text, history.past, where=where, told=told)

        try:
            return await asyncio.to_thread(look)
        except UnparsableError as error:
            log.info("no next edit: %s", error)
            return []

    def _opened(self, uri: str) -> ClientDocument | None:
        return next((one for one in self._documents() if one.uri == uri), None)

    async def _elsewhere(self, document: ClientDocument, change: RecentChange) -> list[Offer]:
        """Returns what follows a change in the other open documents of its language."""
        found: list[tuple[ClientDocument, int, list[Offer]]] = []
        alike = [one for one in self._documents() if one.uri != document.uri and one.language == document.language]
        for other in alike[:MAX_OTHERS]:
            if other.size <= MAX_BYTES:
                version, text = other.version, other.text.decode()
                look = partial(offers, change, other.uri, text, (), where="elsewhere", least=ELSEWHERE)
                places = await asyncio.to_thread(look)
                found.append((other, version, places))
        # Some may have been edited or closed meanwhile.
        current = (places for other, version, places in found if self._is_current(other, version))
        return list(chain.from_iterable(current))

    def _is_current(self, document: ClientDocument, version: int) -> bool:
        return self._opened(document.uri) is document and document.version == version

    def _show(self, offer: Offer) -> ShownOffer | None:
        """Returns an offer as it is shown, None where its document has been closed."""
        document = self._opened(offer.uri)
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
        self._dismissed[shown.offer.key] = None
        while len(self._dismissed) > DISMISSED:
            self._dismissed.popitem(last=False)
        self._silent.update(document.uri for document in self._documents())


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
