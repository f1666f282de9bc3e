"""Runs work under a progress bar that the user can cancel."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from lsprotocol import types

from lacuna_lsp.client.capabilities import shows_progress
from lacuna_lsp.client.errors import CancelledByUserError
from lacuna_lsp.session.server_connection import Server

Report = Callable[[str, float], None]


@asynccontextmanager
async def working(ls: Server, title: str) -> AsyncIterator[Report]:
    """Shows progress during a piece of work; yields a function that takes a message and a share in 0..1.

    Raises CancelledByUserError if the user cancels.
    """
    if not shows_progress(ls.client_capabilities):
        yield lambda message, share: None
        return
    progress, token, task = ls.work_done_progress, uuid.uuid4().hex, asyncio.current_task()
    await progress.create_async(token)
    progress.begin(token, types.WorkDoneProgressBegin(title, cancellable=True, percentage=0))
    cancelled = progress.tokens[token]
    if task is not None:
        cancelled.add_done_callback(lambda done: task.cancel() if done.cancelled() else None)

    def report(message: str, share: float) -> None:
        progress.report(token, types.WorkDoneProgressReport(message=message, percentage=round(100 * share)))

    try:
        yield report
    except asyncio.CancelledError:
        if cancelled.cancelled() and task is not None:
            task.uncancel()
            raise CancelledByUserError(f"{title}: cancelled, nothing was edited") from None
        raise
    finally:
        progress.end(token, types.WorkDoneProgressEnd())
        progress.tokens.pop(token, None)
