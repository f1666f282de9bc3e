"""Has the engine read a document's context while the user rests, so that the next suggestion need not wait for it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from lacuna_lsp.documents.document import Document
from lacuna_lsp.engine.connection import Engine
from lacuna_model.core.params import DecodeOptions, Region, Snippet
from lacuna_server.wire.protocol import ServiceError

log = logging.getLogger(__name__)

# How long the cursor must have stood still, and nothing been typed or asked.
REST_S = 0.5

Above = Callable[[], tuple[Snippet, ...]]


class ReadAhead:
    """Asks the engine to encode the context of the place where the cursor rests, one place at a time.

    ``turn`` counts what it was told: who waits meanwhile can see whether anything else has happened.
    """

    def __init__(self, engine: Engine, rest_s: float = REST_S) -> None:
        self._engine = engine
        self._rest_s = rest_s
        self._task: asyncio.Task[None] | None = None
        self._again: Callable[[], Awaitable[None]] | None = None
        self.turn = 0

    def rests(self, document: Document, offset: int, above: Above) -> None:
        """The cursor is at a byte offset of a document; ``above`` tells what other documents stand in front of it."""

        async def read() -> None:
            await self._engine.infill(
                document,
                [Region(offset, offset)],
                options=DecodeOptions(encode_only=True),
                snippets=above(),
                supersede=False,
            )

        self.turn += 1
        self._again = read
        self._start()

    def moved(self) -> int:
        """The cursor's place is another, or a request is under way: reading for it is of no use. Returns the turn."""
        self.turn += 1
        self._again = None
        self._stop()
        return self.turn

    def ready(self) -> None:
        """The engine is there: what it could not be asked for before is asked now."""
        if self._again is not None:
            self._start()

    def _start(self) -> None:
        self._stop()
        self._task = asyncio.ensure_future(self._read())

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _read(self) -> None:
        await asyncio.sleep(self._rest_s)
        if self._again is None:
            return
        try:
            await self._again()
        except (ServiceError, OSError) as error:  # nobody asked for it
            log.info("nothing is read ahead: %s", error)
