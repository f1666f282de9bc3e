"""LSP messages that pygls lacks, and pygls behaviour that Lacuna replaces."""

import logging
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import cattrs
import msgspec
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method

log = logging.getLogger(__name__)

# The session handles these: pygls would keep a second copy of each document, with other line endings.
SESSION_METHODS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
    types.EXIT,
)
UNREADABLE = "the editor sent a malformed {}; open the file again, so that Lacuna has its text"
# Clients of Copilot's language server send the first three; the last one is Lacuna's own.
DID_SHOW = "textDocument/didShowCompletion"
DID_PARTIALLY_ACCEPT = "textDocument/didPartiallyAcceptCompletion"
DID_FOCUS = "textDocument/didFocus"
DID_REJECT = "textDocument/didRejectCompletion"
# The next edit of Copilot's server; the last one is Lacuna's own.
INLINE_EDIT = "textDocument/copilotInlineEdit"
DID_SHOW_EDIT = "textDocument/didShowInlineEdit"
DID_REJECT_EDIT = "textDocument/didRejectInlineEdit"
# Lacuna's own: what the editor's other language servers say of the names at a cursor.
DID_FIND_SIGNATURES = "textDocument/didFindSignatures"
# rust-analyzer's notification, with additional fields.
STATUS = "experimental/serverStatus"


class OwnParams(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A JSON object with keys in camel case, of a message that LSP does not have or that has more than LSP's."""


class Reported(OwnParams, frozen=True):
    """What a compiler or linter reports of a place."""

    range: types.Range
    message: str | types.MarkupContent

    @property
    def said(self) -> str:
        """The message as text."""
        return self.message if isinstance(self.message, str) else self.message.value


class Context(OwnParams, frozen=True):
    """How suggestions or a next edit were requested (1: invoked, 2: automatically), and what may come of it.

    A next edit may be in another open document if the client says so. ``diagnostics`` are those of the document now.
    """

    trigger_kind: int = 2
    selected_completion_info: types.SelectedCompletionInfo | None = None
    other_documents: bool = False
    diagnostics: tuple[Reported, ...] = ()

    @property
    def invoked(self) -> bool:
        """Whether the user has asked explicitly."""
        return self.trigger_kind == types.InlineCompletionTriggerKind.Invoked


class CursorParams(OwnParams, frozen=True):
    """A cursor in a document, with the version of the document that some clients send."""

    text_document: types.OptionalVersionedTextDocumentIdentifier
    position: types.Position
    context: Context = Context()


class SeenItem(OwnParams, frozen=True):
    """A suggestion or a next edit, which its command identifies, if the client has kept that."""

    command: types.Command | None = None

    @property
    def arguments(self) -> Sequence[Any]:
        """The arguments of its command."""
        return (self.command.arguments or ()) if self.command is not None else ()


class ItemParams(OwnParams, frozen=True):
    """What was shown, accepted or rejected."""

    item: SeenItem


class FocusParams(OwnParams, frozen=True):
    """The document that has the focus, if any, and its cursor position, which Copilot's clients omit."""

    text_document: types.TextDocumentIdentifier | None = None
    position: types.Position | None = None


class ToldSignature(OwnParams, frozen=True):
    """What a language server, called ``server``, says of a name: how it is used."""

    server: str
    name: str
    text: str


class SignaturesParams(OwnParams, frozen=True):
    """What the editor's other language servers say of the names at a cursor of a document."""

    text_document: types.TextDocumentIdentifier
    position: types.Position
    signatures: tuple[ToldSignature, ...] = ()


OWN_PARAMS: dict[str, type[OwnParams]] = {
    types.TEXT_DOCUMENT_INLINE_COMPLETION: CursorParams,
    INLINE_EDIT: CursorParams,
    DID_FOCUS: FocusParams,
    DID_FIND_SIGNATURES: SignaturesParams,
    **dict.fromkeys((DID_SHOW, DID_PARTIALLY_ACCEPT, DID_REJECT, DID_SHOW_EDIT, DID_REJECT_EDIT), ItemParams),
}


class Protocol(LanguageServerProtocol):
    """The conversation with one client."""

    _initialized = False

    # pygls keeps what these two return, and with it the protocol and all documents of a client that has gone.
    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]  # pygls caches it
        """Returns the type of a message, none where Lacuna has its own of its parameters."""
        return None if method in OWN_PARAMS else types.METHOD_TO_TYPES.get(method, (None,))[0]

    def get_result_type(self, method: str) -> type[Any] | None:  # type: ignore[override]  # pygls caches it
        """Returns the type of the answer to a request of the server."""
        return types.METHOD_TO_TYPES.get(method, (None, None))[1]

    def handle_message(self, message: Any) -> None:
        """Handles a message; refuses all but ``exit`` before ``initialize`` and after ``shutdown``, as LSP demands."""
        method, request = getattr(message, "method", ""), hasattr(message, "id") and hasattr(message, "method")
        refusal = self._refusal(method) if method and method != types.EXIT else None
        if refusal is None:
            self._initialized |= method == types.INITIALIZE
            super().handle_message(message)
        elif request:
            self._send_response(message.id, error=refusal.to_response_error())

    def _refusal(self, method: str) -> JsonRpcException | None:
        """Returns the error for a message that LSP does not allow now, else None."""
        if self._shutdown:
            return JsonRpcInvalidRequest("the server was shut down")
        if not self._initialized and method != types.INITIALIZE:
            return JsonRpcServerNotInitialized("the first request has to be initialize")
        if self._initialized and method == types.INITIALIZE:
            return JsonRpcInvalidRequest("the server is initialized")
        return None

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]  # a generator in pygls
        self, params: types.ExecuteCommandParams
    ) -> Any:
        """Runs a command in a task that a cancellation stops.

        pygls drops only the answer of a cancelled command, whose edits would still be made.
        """
        command, args, kwargs = next(super().lsp_workspace__execute_command(params))
        return await command(*args, **kwargs)

    def _execute_handler(
        self, msg_id: Any, handler: Any, callback: Callable[[Any], Any], args: Any = None, kwargs: Any = None
    ) -> None:
        """Calls a handler, and forgets its message once that is handled: pygls keeps every notification for good."""

        def handled(future: Any) -> None:
            self._request_futures.pop(msg_id, None)
            callback(future)

        super()._execute_handler(msg_id, handler, handled, args, kwargs)

    def _send_handler_result(self, future: Any, *, msg_id: Any) -> None:
        """Answers a request. A refusal is one line of the log, so that the tracebacks in it are those of faults."""
        error = None if future.cancelled() else future.exception()
        if not isinstance(error, JsonRpcException) or isinstance(error, JsonRpcInternalError):
            super()._send_handler_result(future, msg_id=msg_id)
            return
        log.info("a request was refused: %s", error.message)
        self._send_response(msg_id, error=error.to_response_error())

    def _handle_response(self, msg_id: Any, result: Any = None, error: Any = None) -> None:
        """Passes a client's answer on, unless nobody waits for it any more, such as a command that was cancelled."""
        self._result_types.pop(msg_id, None)  # pygls leaves it there where the answer is an error
        future = self._request_futures.get(msg_id)
        if future is not None and future.done():
            del self._request_futures[msg_id]
            return
        super()._handle_response(msg_id, result, error)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Converts a message to its type; answers a malformed request with an error, and tells the user of a change.

        pygls sends no answer to a malformed request, so its sender would wait forever. A change that cannot be read
        leaves the server with another text than the client's.
        """
        method = data.get("method", "") if "jsonrpc" in data else ""
        own = OWN_PARAMS.get(f"{method}")
        try:
            if own is None:
                return super().structure_message(data)
            message = super().structure_message(data | {"params": None})
            message.params = msgspec.convert(data.get("params"), own, strict=False)
            return message
        except (JsonRpcException, msgspec.ValidationError) as problem:
            error = problem if isinstance(problem, JsonRpcException) else JsonRpcInvalidParams(f"{problem}")
            if "id" in data and method:
                self._send_response(data["id"], error=error.to_response_error())
            elif method in SESSION_METHODS:
                self._server.session.say_once(UNREADABLE.format(method))  # type: ignore[attr-defined]
            raise error from None


@cache
def converter() -> cattrs.Converter:
    """Returns pygls's converter, which takes what some clients send besides; all clients share it."""
    made: cattrs.Converter = default_converter()  # type: ignore[no-untyped-call]
    # A client that counts no versions sends null, or nothing; and null for a range, where its absence means all.
    versioned = types.OptionalVersionedTextDocumentIdentifier
    made.register_structure_hook(
        types.VersionedTextDocumentIdentifier, lambda given, _: versioned(given["uri"], given.get("version"))
    )
    # The union as cattrs sees it: its name in lsprotocol holds names of its members, and not these.
    whole, partial = types.TextDocumentContentChangeWholeDocument, types.TextDocumentContentChangePartial
    made.register_structure_hook(
        partial | whole, lambda given, _: made.structure(given, whole if given.get("range") is None else partial)
    )
    return made
