"""Runs only the newest request of each document."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Latest:
    """Running requests, at most one per document."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[Any]] = {}

    async def run(self, uri: str, request: Coroutine[Any, Any, T], superseded: T) -> T:
        """Returns the result of a request, or ``superseded`` if a newer request replaced it."""
        self.cancel(uri)
        task = asyncio.ensure_future(request)
        self._running[uri] = task
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():  # the client cancelled
                raise
            return superseded
        finally:
            if self._running.get(uri) is task:
                del self._running[uri]

    def cancel(self, uri: str) -> None:
        """Cancels the running request of a document, if there is one."""
        if (task := self._running.pop(uri, None)) is not None:
            task.cancel()

    def cancel_others(self, uri: str) -> None:
        """Cancels the requests of all documents but this one."""
        for other in [running for running in self._running if running != uri]:
            self.cancel(other)
