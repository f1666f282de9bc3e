"""One client's connection: pygls's server with documents, engine and suggestions; its messages and progress bars."""

import asyncio
import functools
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import FeatureRequestError, JsonRpcException
from pygls.lsp.server import LanguageServer

from lacuna_lsp.client.client_session import ClientSession, code
from lacuna_lsp.client.news import AT_ONCE_S, LoadingProgress, News, working
from lacuna_lsp.client.protocol import SESSION_METHODS, Protocol, converter
from lacuna_lsp.connection import ServiceConnection
from lacuna_lsp.document import ClientDocument
from lacuna_lsp.next_edits import NextEdits
from lacuna_lsp.suggest.inline import Inline
from lacuna_model.core.errors import LacunaError
from lacuna_model.core.params import Diagnostic, FillGaps, InfillResult, Region, Task
from lacuna_server.client.client import Address

log = logging.getLogger(__name__)
T = TypeVar("T")
EVERY_NOTEBOOK = types.NotebookDocumentFilterWithNotebook(notebook="*")


class Server(LanguageServer):
    """One client's connection; the messages ``exit`` and ``shutdown`` set ``ended`` and ``shut_down``."""

    protocol: Protocol

    def __init__(self, locate: Callable[..., Awaitable[Address]]) -> None:
        super().__init__(
            "lacuna-lsp",
            version("lacuna-code"),
            protocol_cls=Protocol,
            converter_factory=converter,
            notebook_document_sync=types.NotebookDocumentSyncOptions([EVERY_NOTEBOOK], save=True),
        )
        for method in SESSION_METHODS:
            self.protocol.fm.builtin_features.pop(method)
        self.session = ClientSession(self.say)
        self.loading = LoadingProgress(self, self.session)
        self.engine = ServiceConnection(locate, self.session, self._hear)
        self.next_edits = NextEdits(self.engine, self.session)
        self.inline = Inline(self.engine, self.session)
        self.ended = threading.Event()
        self.shut_down = False
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Sends the client the engine's state and starts to connect to the engine."""
        self.loading.hear(self.engine.news)
        self._running = asyncio.create_task(self.engine.run())

    async def close(self) -> None:
        """Ends the session after the client has disconnected."""
        self.inline.calmness.save()
        self.inline.left_for("")
        self.loading.close()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    def _hear(self, news: News) -> None:
        self.loading.hear(news)
        if news.state == "ready":
            self.inline.ready()

    async def infill(
        self,
        document: ClientDocument,
        regions: Sequence[Region],
        task: Task = FillGaps(),  # noqa: B008 (frozen)
        diagnostics: Sequence[Diagnostic] = (),
    ) -> InfillResult:
        """Fills regions on the user's command; raises ServiceError with the reason."""
        self.inline.hide()
        above = self.session.above(document)
        return await self.engine.infill(document, regions, task=task, snippets=above, diagnostics=diagnostics)

    # --- messages to the client

    def say(self, line: str) -> None:
        """Shows the user one line."""
        self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"Lacuna: {line}"))

    async def ask(self, message: str, answers: Iterable[str], kind: types.MessageType = types.MessageType.Info) -> str:
        """Asks the user; returns the chosen one of the answers, "" for none."""
        actions = [types.MessageActionItem(answer) for answer in answers]
        params = types.ShowMessageRequestParams(kind, message, actions)
        chosen = await self.window_show_message_request_async(params)
        return chosen.title if chosen is not None else ""

    async def show_file(self, path: Path) -> None:
        """Opens a file in the editor."""
        await self.window_show_document_async(types.ShowDocumentParams(path.as_uri(), take_focus=True))

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """Logs an error: editors show errors that pygls reports as popups, at every keystroke."""
        if source is FeatureRequestError:  # the client has got an error response
            return
        log.error("%s: %s", source.__name__, error)
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"{error}"))


def refusing(handler: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Coroutine[Any, Any, T]]:
    """Decorates a handler: a LacunaError becomes an error response with its LSP code."""

    @functools.wraps(handler)
    async def wrapped(ls: Server, *arguments: Any) -> T:
        try:
            return await handler(ls, *arguments)
        except LacunaError as error:
            raise JsonRpcException(str(error), code(error)) from None

    return wrapped


async def patiently(ls: Server, title: str, work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of some work, with progress, without a button, if it takes a while.

    Raises CancelledByUserError if the user cancels, and whatever the work raises.
    """
    task = asyncio.ensure_future(work)
    try:
        if (await asyncio.wait({task}, timeout=AT_ONCE_S))[0]:
            return task.result()
        async with working(ls, title, button=False, shares=False):
            return await task
    finally:
        task.cancel()
