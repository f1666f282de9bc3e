"""The LSP messages that pygls does not know, and what it does otherwise than we need."""

import logging
from collections.abc import Generator
from inspect import isawaitable
from typing import Any

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, override
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest, JsonRpcServerNotInitialized
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method

from lacuna_lsp.client.capabilities import STATUS_CAPABILITY

log = logging.getLogger(__name__)

# Documents are the session's: pygls's own would be a second copy with other line endings.
SESSION_METHODS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
    types.EXIT,
)
# Copilot's language server has these, and clients of it send them; the last one is ours.
DID_SHOW = "textDocument/didShowCompletion"
DID_PARTIALLY_ACCEPT = "textDocument/didPartiallyAcceptCompletion"
DID_FOCUS = "textDocument/didFocus"
DID_REJECT = "textDocument/didRejectCompletion"
# As rust-analyzer tells its clients, with more beside it.
STATUS = "experimental/serverStatus"


@attrs.define
class InlineCompletionParams:
    """Parameters of ``textDocument/inlineCompletion``, with the version that some clients send."""

    text_document: types.OptionalVersionedTextDocumentIdentifier
    position: types.Position
    context: types.InlineCompletionContext = attrs.field(
        factory=lambda: types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
    )


@attrs.define
class InlineCompletionRequest:
    """The request ``textDocument/inlineCompletion``."""

    id: int | str
    params: InlineCompletionParams
    method: str = types.TEXT_DOCUMENT_INLINE_COMPLETION
    jsonrpc: str = "2.0"


@attrs.define
class ItemParams:
    """What became of a suggestion; ``accepted_length`` counts UTF-16 units from the item's start."""

    item: types.InlineCompletionItem
    accepted_length: int = 0


@attrs.define
class ItemNotification:
    """A notification about a suggestion."""

    params: ItemParams
    method: str
    jsonrpc: str = "2.0"


@attrs.define
class FocusParams:
    """The document that has the focus now, if any, and where its cursor is, which Copilot's clients do not say."""

    text_document: types.TextDocumentIdentifier | None = None
    position: types.Position | None = None


@attrs.define
class FocusNotification:
    """The notification ``textDocument/didFocus``."""

    params: FocusParams
    method: str = DID_FOCUS
    jsonrpc: str = "2.0"


OWN_TYPES: dict[str, type[Any]] = {
    types.TEXT_DOCUMENT_INLINE_COMPLETION: InlineCompletionRequest,
    DID_SHOW: ItemNotification,
    DID_PARTIALLY_ACCEPT: ItemNotification,
    DID_REJECT: ItemNotification,
    DID_FOCUS: FocusNotification,
}


class Protocol(LanguageServerProtocol):
    """One client's conversation."""

    _initialized = False

    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]  # there it is cached
        """The type of a message, ours where there is one."""
        found: type[Any] | None = OWN_TYPES.get(method) or super().get_message_type(method)
        return found

    def handle_message(self, message: Any) -> None:
        """Serve a message where LSP has it: nothing before ``initialize`` and after ``shutdown`` but ``exit``."""
        method, request = getattr(message, "method", ""), hasattr(message, "id") and hasattr(message, "method")
        refusal = self._refusal(method) if method and method != types.EXIT else None
        if refusal is None:
            self._initialized |= method == types.INITIALIZE
            super().handle_message(message)
        elif request:
            self._send_response(message.id, error=refusal.to_response_error())

    def _refusal(self, method: str) -> JsonRpcException | None:
        """Why a message may not come now."""
        if self._shutdown:
            return JsonRpcInvalidRequest("the server was shut down")
        if not self._initialized and method != types.INITIALIZE:
            return JsonRpcServerNotInitialized("the first request has to be initialize")
        if self._initialized and method == types.INITIALIZE:
            return JsonRpcInvalidRequest("the server is initialized")
        return None

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """The answer to the first request, which also says what we do that LSP does not know."""
        result = yield from super().lsp_initialize(params)
        result.capabilities.experimental = {STATUS_CAPABILITY: True}
        return result

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]  # there it is a generator
        self, params: types.ExecuteCommandParams
    ) -> Any:
        """Run a command in a task that a cancel ends: pygls drops the answer alone, and the edits come all the same."""
        command, args, kwargs = next(super().lsp_workspace__execute_command(params))
        result = command(*args, **kwargs)
        return await result if isawaitable(result) else result

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message as its type. A request that is malformed is answered; pygls would leave its sender waiting."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise


def converter() -> cattrs.Converter:
    """pygls's converter, which also knows our types' names on the wire."""
    made: cattrs.Converter = default_converter()  # type: ignore[no-untyped-call]
    for own in (InlineCompletionParams, ItemParams, FocusParams):
        names = {field.name: override(rename=_camel(field.name)) for field in attrs.fields(own)}
        made.register_structure_hook(own, make_dict_structure_fn(own, made, **names))  # type: ignore[arg-type]
    return made


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
