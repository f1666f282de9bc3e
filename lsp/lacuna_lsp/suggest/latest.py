"""Of the requests for one document only the newest runs."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Latest:
    """Requests under way, at most one for each document."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[Any]] = {}

    async def run(self, uri: str, request: Coroutine[Any, Any, T], superseded: T) -> T:
        """What the request answers, or ``superseded`` where a newer one has taken its place."""
        self.cancel(uri)
        task = asyncio.ensure_future(request)
        self._running[uri] = task
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():  # it was the client that cancelled
                raise
            return superseded
        finally:
            if self._running.get(uri) is task:
                del self._running[uri]

    def cancel(self, uri: str) -> None:
        """Stop the request that runs for a document, if one does."""
        if (task := self._running.pop(uri, None)) is not None:
            task.cancel()

    def cancel_others(self, uri: str) -> None:
        """Stop what runs for every document but this one."""
        for other in [running for running in self._running if running != uri]:
            self.cancel(other)
