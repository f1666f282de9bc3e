"""One client's connection: pygls's server with a session, and its error handling."""

import asyncio
import functools
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import FeatureRequestError, JsonRpcException
from pygls.lsp.server import LanguageServer

from lacuna_lsp.client import settings
from lacuna_lsp.client.errors import code
from lacuna_lsp.client.news import LoadingProgress
from lacuna_lsp.client.protocol import SESSION_METHODS, Protocol, converter
from lacuna_lsp.session.client_session import ClientSession
from lacuna_model.core.errors import LacunaError
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
            notebook_document_sync=types.NotebookDocumentSyncOptions([EVERY_NOTEBOOK]),
        )
        for method in SESSION_METHODS:
            self.protocol.fm.builtin_features.pop(method)
        self.loading = LoadingProgress(self, lambda line: self.session.say_once(line))
        self.session = ClientSession(locate, self.loading.hear, self.say)
        self.ended = threading.Event()
        self.shut_down = False
        self._following: asyncio.Task[None] | None = None

    @property
    def folders(self) -> list[str]:
        """The paths of the client's open folders."""
        return settings.folders(self.workspace.folders, self.workspace.root_uri)

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

    def start(self) -> None:
        """Sends the client the engine's state and starts to connect to the engine."""
        self.loading.hear(self.session.engine.news)
        self._following = asyncio.create_task(self.loading.run())
        self.session.start()

    async def close(self) -> None:
        """Ends the session after the client has disconnected."""
        await self.session.close()
        if self._following is not None:
            self._following.cancel()


def refusing(handler: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Coroutine[Any, Any, T]]:
    """Decorates a handler: a LacunaError becomes an error response with its LSP code."""

    @functools.wraps(handler)
    async def wrapped(ls: Server, *arguments: Any) -> T:
        try:
            return await handler(ls, *arguments)
        except LacunaError as error:
            raise JsonRpcException(str(error), code(error)) from None

    return wrapped
