"""Runs work under a progress bar that the user can cancel."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from lsprotocol import types

from lacuna_lsp.client.capabilities import shows_progress
from lacuna_lsp.client.errors import CancelledByUserError
from lacuna_lsp.session.server_connection import Server

Report = Callable[[str, float], None]
T = TypeVar("T")

AT_ONCE_S = 0.7  # work that takes less time shows no progress


async def patiently(ls: Server, title: str, work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of some work, with progress, without a button, if it takes a while.

    Raises CancelledByUserError if the user cancels, and whatever the work raises.
    """
    task = asyncio.ensure_future(work)
    try:
        if (await asyncio.wait({task}, timeout=AT_ONCE_S))[0]:
            return task.result()
        async with working(ls, title, button=False):
            return await task
    finally:
        task.cancel()


@asynccontextmanager
async def working(ls: Server, title: str, *, button: bool = True) -> AsyncIterator[Report]:
    """Shows progress during a piece of work; yields a function that takes a message and a share in 0..1.

    ``button``: the client shows one that cancels the work. Raises CancelledByUserError if the user cancels.
    """
    if not shows_progress(ls.client_capabilities):
        yield lambda message, share: None
        return
    progress, token, task = ls.work_done_progress, uuid.uuid4().hex, asyncio.current_task()
    await progress.create_async(token)
    progress.begin(token, types.WorkDoneProgressBegin(title, cancellable=button, percentage=0 if button else None))
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
