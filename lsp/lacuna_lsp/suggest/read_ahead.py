"""Lets the engine encode a document's context while the cursor rests, so that the next suggestion comes faster."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.engine.connection import ServiceConnection
from lacuna_model.core.params import ReadContext, Region, Snippet
from lacuna_server.wire.protocol import ServiceError

log = logging.getLogger(__name__)

# Seconds without typing, cursor moves or requests before the engine reads ahead.
REST_S = 0.5
# The same where the last fill had to do without the whole context.
SHORT_REST_S = 0.02

Above = Callable[[], tuple[Snippet, ...]]


class ReadAhead:
    """Asks the engine to encode the context of the place where the cursor rests, one place at a time.

    ``turn`` counts the calls, so that a caller can see whether another call came in between. ``hurries`` says that the
    last fill had to do without the whole context, so that there is no time to lose.
    """

    def __init__(self, engine: ServiceConnection) -> None:
        self._engine = engine
        self._task: asyncio.Task[None] | None = None
        self._again: Callable[[], Awaitable[None]] | None = None
        self.turn = 0
        self.hurries = False

    def rests(self, document: ClientDocument, offset: int, above: Above) -> None:
        """Handles a cursor at a byte offset of a document; ``above`` returns the texts that precede the document."""

        async def read() -> None:
            await self._engine.infill(
                document,
                [Region(offset, offset)],
                task=ReadContext(),
                snippets=above(),
                supersede=False,
            )

        self.turn += 1
        self._again = read
        self._start(read)

    def moved(self) -> int:
        """Stops reading ahead because the cursor moved or a request runs; returns the new turn."""
        self.turn += 1
        self._again = None
        self._stop()
        return self.turn

    def ready(self) -> None:
        """Starts a reading that was postponed because the engine was not ready."""
        if self._again is not None:
            self._start(self._again)

    def _start(self, read: Callable[[], Awaitable[None]]) -> None:
        self._stop()
        self._task = asyncio.ensure_future(self._read(read))

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _read(self, read: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(min(REST_S, SHORT_REST_S) if self.hurries else REST_S)
        try:
            await read()
            self.hurries = False
        except (ServiceError, OSError) as error:  # no request waits for it
            log.info("nothing is read ahead: %s", error)
