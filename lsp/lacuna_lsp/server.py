"""One client's connection: pygls's server with documents, engine and suggestions; its messages and progress bars."""

import asyncio
import functools
import logging
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import FeatureRequestError, JsonRpcException
from pygls.lsp.server import LanguageServer

from lacuna_lsp.client.client_session import CancelledByUserError, ClientSession, code
from lacuna_lsp.client.protocol import SESSION_METHODS, STATUS, Protocol, converter
from lacuna_lsp.connection import Locate, News, ServiceConnection
from lacuna_lsp.document import ClientDocument
from lacuna_lsp.next_edits import NextEdits
from lacuna_lsp.suggest.inline import Inline
from lacuna_model.core.errors import LacunaError
from lacuna_model.core.params import Diagnostic, FillGaps, InfillResult, Region, Task

log = logging.getLogger(__name__)
T = TypeVar("T")
Report = Callable[[str, float], None]
AT_ONCE_S = 0.7  # an engine that starts faster shows no progress before it loads its model
EVERY_NOTEBOOK = types.NotebookDocumentFilterWithNotebook(notebook="*")


class LoadingProgress:
    """Shows the changes of the engine's state to one client."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._bar: asyncio.Task[None] | None = None
        self._nothing = ""
        self._held = False
        self._end_of_snooze: asyncio.TimerHandle | None = None

    def hear(self, news: News) -> None:
        """Takes in the engine's present state, and sends it to clients that accept status notifications."""
        self.notify()
        if news.state in ("starting", "loading"):
            self._bar = self._bar or asyncio.create_task(self._show())
            return
        self._hide()
        if news.state == "lost":
            self._server.say("The connection to the engine broke; it is tried again.")
        elif news.state in ("unreachable", "failed"):
            self._server.session.say_once(f"No engine: {news.message}")

    def _hide(self) -> None:
        if self._bar is not None:
            self._bar.cancel()
        self._bar = None

    async def _show(self) -> None:
        """Shows a bar until cancelled, if the engine does not start at once."""
        engine = self._server.engine
        if engine.news.state == "starting":
            await asyncio.sleep(AT_ONCE_S)
        with suppress(CancelledByUserError):  # the loading goes on without the bar
            async with working(self._server, "Lacuna", button=False) as report:
                await engine.becomes_ready(lambda news: report(news.message or "the engine starts", news.fraction))

    def answered(self, nothing: str) -> None:
        """Takes why the user's last request for suggestions got none, "" if it got some, for the same clients."""
        before, self._nothing = self._nothing, nothing
        if nothing or before:
            self.notify(nothing)

    def withheld(self, held: bool) -> None:
        """Takes whether the last suggestion was held back as unsure, for the same clients."""
        if held != self._held:
            self._held = held
            self.notify()

    def snoozed(self) -> None:
        """Takes in that suggestions are snoozed or go on, for the same clients, which are told of its end, too."""
        if self._end_of_snooze is not None:
            self._end_of_snooze.cancel()
        if seconds := self._server.session.snoozed_s:
            self._end_of_snooze = asyncio.get_running_loop().call_later(seconds, self.notify)
        self.notify()

    def close(self) -> None:
        """Shows and tells nothing any more."""
        self._hide()
        if self._end_of_snooze is not None:
            self._end_of_snooze.cancel()

    def status(self) -> dict[str, Any]:
        """Returns the parameters of the notification."""
        settings = self._server.session.settings
        on = {"enabled": settings.enabled, "automatic": settings.automatic, "snoozedS": self._server.session.snoozed_s}
        return {**self._server.engine.news.status(), **on, "nothing": self._nothing, "held": int(self._held)}

    def notify(self, nothing: str = "") -> None:
        """Sends the state; ``nothing`` is told once, with the answer that it is about."""
        if has_experimental(self._server, "serverStatusNotification"):
            self._server.protocol.notify(STATUS, {**self.status(), "nothing": nothing})


class Server(LanguageServer):
    """One client's connection; the messages ``exit`` and ``shutdown`` set ``ended`` and ``shut_down``."""

    protocol: Protocol

    def __init__(self, locate: Locate) -> None:
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
        self.loading = LoadingProgress(self)
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


def has_experimental(server: LanguageServer, name: str) -> bool:
    """Whether the client declares a capability that LSP does not have, as rust-analyzer's clients do."""
    declared = server.client_capabilities.experimental
    return isinstance(declared, Mapping) and bool(declared.get(name))


@asynccontextmanager
async def working(
    server: LanguageServer, title: str, *, button: bool = True, shares: bool = True
) -> AsyncIterator[Report]:
    """Shows progress during a piece of work; yields a function that takes a message and a share in 0..1.

    ``button``: the client shows one that cancels the work. ``shares``: shares will be told. Raises CancelledByUserError
    if the user cancels.
    """
    if not get_capability(server.client_capabilities, "window.work_done_progress"):
        yield lambda message, share: None
        return
    progress, token, task = server.work_done_progress, uuid.uuid4().hex, asyncio.current_task()
    await progress.create_async(token)
    progress.begin(token, types.WorkDoneProgressBegin(title, cancellable=button, percentage=0 if shares else None))
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
