"""LSP messages that pygls lacks, and pygls behaviour that Lacuna replaces."""

import logging
from collections.abc import Callable
from functools import cache
from inspect import isawaitable
from typing import Any

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, override
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
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


@attrs.define
class InlineCompletionParams:
    """Parameters of ``textDocument/inlineCompletion``, with the document version that some clients send."""

    text_document: types.OptionalVersionedTextDocumentIdentifier
    position: types.Position
    context: types.InlineCompletionContext = attrs.field(
        factory=lambda: types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
    )


@attrs.define
class ItemParams:
    """A suggestion that was shown, accepted or rejected; ``accepted_length`` is in UTF-16 units from its start."""

    item: types.InlineCompletionItem
    accepted_length: int = 0


@attrs.define
class FocusParams:
    """The document that has the focus, if any, and its cursor position, which Copilot's clients omit."""

    text_document: types.TextDocumentIdentifier | None = None
    position: types.Position | None = None


@attrs.define
class ToldSignature:
    """What a language server, called ``server``, says of a name: how it is used."""

    server: str
    name: str
    text: str


@attrs.define
class SignaturesParams:
    """What the editor's other language servers say of the names at a cursor of a document."""

    text_document: types.TextDocumentIdentifier
    position: types.Position
    signatures: list[ToldSignature] = attrs.field(factory=list)


@attrs.define
class InlineEditContext:
    """How a next edit was requested (1: invoked, 2: automatically), and whether it may be in another open document.

    ``diagnostics`` are what compilers and linters report in the document now.
    """

    trigger_kind: int = 2
    other_documents: bool = False
    diagnostics: list[types.Diagnostic] = attrs.field(factory=list)


@attrs.define
class InlineEditParams:
    """Parameters of ``textDocument/copilotInlineEdit``."""

    text_document: types.OptionalVersionedTextDocumentIdentifier
    position: types.Position
    context: InlineEditContext = attrs.field(factory=InlineEditContext)


@attrs.define
class EditItem:
    """A next edit, of which only the command identifies it."""

    command: types.Command | None = None


@attrs.define
class EditItemParams:
    """A next edit that was shown or dismissed."""

    item: EditItem


def _message(params: type[Any], *, answered: bool = False) -> type[Any]:
    """Returns the type of a notification, or of a request that is ``answered``, with these parameters."""
    fields: dict[str, Any] = {"id": attrs.field(type=int | str)} if answered else {}  # type: ignore[arg-type]  # a union
    fields |= {"params": attrs.field(type=params), "method": attrs.field(type=str)}
    fields |= {"jsonrpc": attrs.field(type=str, default="2.0")}
    return attrs.make_class(params.__name__.replace("Params", "Message"), fields)


_ITEM, _EDIT_ITEM = _message(ItemParams), _message(EditItemParams)
OWN_TYPES: dict[str, type[Any]] = {
    types.TEXT_DOCUMENT_INLINE_COMPLETION: _message(InlineCompletionParams, answered=True),
    DID_SHOW: _ITEM,
    DID_PARTIALLY_ACCEPT: _ITEM,
    DID_REJECT: _ITEM,
    DID_FOCUS: _message(FocusParams),
    DID_FIND_SIGNATURES: _message(SignaturesParams),
    INLINE_EDIT: _message(InlineEditParams, answered=True),
    DID_SHOW_EDIT: _EDIT_ITEM,
    DID_REJECT_EDIT: _EDIT_ITEM,
}


class Protocol(LanguageServerProtocol):
    """The conversation with one client."""

    _initialized = False

    # pygls keeps what these two return, and with it the protocol and all documents of a client that has gone.
    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]  # pygls caches it
        """Returns the type of a message: Lacuna's own if it has one, else that of LSP."""
        return OWN_TYPES.get(method) or types.METHOD_TO_TYPES.get(method, (None,))[0]

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
        result = command(*args, **kwargs)
        return await result if isawaitable(result) else result

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
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            method = data.get("method", "")
            if "id" in data and method:
                self._send_response(data["id"], error=error.to_response_error())
            elif method in SESSION_METHODS:
                self._server.session.say_once(UNREADABLE.format(method))  # type: ignore[attr-defined]
            raise


@cache
def converter() -> cattrs.Converter:
    """Returns pygls's converter, extended by Lacuna's types and their camel-case field names; all clients share it."""
    made: cattrs.Converter = default_converter()  # type: ignore[no-untyped-call]
    for own in (InlineCompletionParams, ItemParams, FocusParams, SignaturesParams, InlineEditContext, InlineEditParams):
        names = {field.name: override(rename=_camel(field.name)) for field in attrs.fields(own)}
        made.register_structure_hook(own, make_dict_structure_fn(own, made, **names))  # type: ignore[arg-type]
    made.register_structure_hook(types.VersionedTextDocumentIdentifier, _versioned)
    # The union as cattrs sees it: its name in lsprotocol holds names of its members, and not these.
    changes = types.TextDocumentContentChangePartial | types.TextDocumentContentChangeWholeDocument
    made.register_structure_hook(changes, _content_change(made))
    return made


def _versioned(given: dict[str, Any], kind: type) -> types.VersionedTextDocumentIdentifier:
    """Converts a document's identifier; a client that counts no versions sends null, or nothing."""
    found = types.OptionalVersionedTextDocumentIdentifier(uri=given["uri"], version=given.get("version"))
    return found  # type: ignore[return-value]  # the same fields


def _content_change(made: cattrs.Converter) -> Callable[[dict[str, Any], Any], Any]:
    """Returns the hook for a change of a text, in which null means what its absence means: the whole text."""
    whole, partial = types.TextDocumentContentChangeWholeDocument, types.TextDocumentContentChangePartial
    return lambda given, kind: made.structure(given, whole if given.get("range") is None else partial)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
