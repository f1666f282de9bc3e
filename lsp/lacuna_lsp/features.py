"""Handlers of LSP messages; each hands its message to the parts that it is about."""

import asyncio
from collections.abc import Callable
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability

from lacuna_lsp.client import protocol, settings
from lacuna_lsp.client.protocol import CursorParams, FocusParams, ItemParams, SignaturesParams
from lacuna_lsp.document import ClientDocument, to_utf8
from lacuna_lsp.edit import actions
from lacuna_lsp.server import Server, has_experimental, patiently, refusing
from lacuna_lsp.suggest import items
from lacuna_lsp.suggest.inline import Request
from lacuna_model.core.errors import RequestError
from lacuna_server.wire.protocol import Edit, FeedbackKind


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """Stores encoding, settings and folders; adds plain completion for clients without inline completion."""
    ls.session.encoding = types.PositionEncodingKind(ls.workspace.position_encoding).value
    did_change_folders(ls)
    ls.session.configure(params.initialization_options)
    if get_capability(params.capabilities, "text_document.inline_completion") is None:
        ls.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions())(completion)


def initialized(ls: Server, params: types.InitializedParams) -> None:
    """Starts the session: the client accepts messages now."""
    ls.start()


def shutdown(ls: Server, params: None) -> None:
    """Records the request to shut down."""
    ls.shut_down = True
    ls.inline.calmness.save()


def end(ls: Server, params: None) -> None:
    """Ends the conversation."""
    ls.ended.set()


def did_change_folders(ls: Server, params: types.DidChangeWorkspaceFoldersParams | None = None) -> None:
    """Stores the paths of the client's folders."""
    ls.session.folders = settings.folders(ls.workspace.folders, ls.workspace.root_uri)
    ls.engine.check()


async def did_change_configuration(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """Applies new settings; requests them if the message does not contain them."""
    values = params.settings
    if values is None and get_capability(ls.client_capabilities, "workspace.configuration"):
        items = [types.ConfigurationItem(section="lacuna")]
        (values,) = await ls.workspace_configuration_async(types.ConfigurationParams(items))
    ls.session.configure(values)
    ls.engine.check()
    ls.loading.notify()


def did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """Opens a document; raises RequestError for a uri that is not valid Unicode."""
    item = params.text_document
    if to_utf8(item.uri).decode() != item.uri:
        raise RequestError(f"{item.uri!r} is no uri")
    document = ClientDocument(item.uri, item.text, item.version, item.language_id, ls.session.encoding)
    ls.session.documents[item.uri] = document
    ls.engine.open(document)
    ls.inline.opened(document)


def did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """Applies changes to a document; a running suggestion for its earlier text ends."""
    document = ls.session.document(params.text_document.uri)
    before = document.snapshot()
    edits = document.apply(params.content_changes, params.text_document.version)
    ls.next_edits.edited(before, document, edits)
    ls.engine.change(document, edits)
    ls.inline.edited(document, edits)


def did_save(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
    """Stores the saved text, against which changes are found."""
    document = ls.session.document(params.text_document.uri)
    document.saved = document.text


def did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """Closes a document."""
    document = ls.session.document(params.text_document.uri)
    ls.inline.closed(document.uri)
    ls.next_edits.forget(document.uri)
    del ls.session.documents[document.uri]
    ls.engine.close(document)


def notebook_did_open(ls: Server, params: types.DidOpenNotebookDocumentParams) -> None:
    """Opens a notebook and its cells."""
    ls.session.notebooks[params.notebook_document.uri] = list(params.notebook_document.cells)
    for cell in params.cell_text_documents:
        did_open(ls, types.DidOpenTextDocumentParams(cell))


def notebook_did_change(ls: Server, params: types.DidChangeNotebookDocumentParams) -> None:
    """Applies inserted, deleted or edited cells."""
    if (cells := params.change.cells) is None:
        return
    if (structure := cells.structure) is not None:
        array, listed = structure.array, ls.session.notebooks.get(params.notebook_document.uri, [])
        listed[array.start : array.start + array.delete_count] = array.cells or []
        for opened in structure.did_open or ():
            did_open(ls, types.DidOpenTextDocumentParams(opened))
        for closed in structure.did_close or ():
            did_close(ls, types.DidCloseTextDocumentParams(closed))
    for typed in cells.text_content or ():
        did_change(ls, types.DidChangeTextDocumentParams(typed.document, typed.changes))


def notebook_did_save(ls: Server, params: types.DidSaveNotebookDocumentParams) -> None:
    """Stores the saved texts of a notebook's cells."""
    for cell in ls.session.notebooks.get(params.notebook_document.uri, ()):
        if (document := ls.session.documents.get(cell.document)) is not None:
            document.saved = document.text


def notebook_did_close(ls: Server, params: types.DidCloseNotebookDocumentParams) -> None:
    """Closes a notebook and its cells."""
    ls.session.notebooks.pop(params.notebook_document.uri, None)
    for cell in params.cell_text_documents:
        did_close(ls, types.DidCloseTextDocumentParams(cell))


@refusing
async def inline_completion(ls: Server, params: CursorParams) -> types.InlineCompletionList:
    """Returns suggestions for a cursor; tells the client why there are none for a user who asked for them."""
    document, context = ls.session.document(params.text_document.uri, params.text_document.version), params.context
    selected = None
    if (entry := context.selected_completion_info) is not None:
        selected = Edit(*document.bounds(entry.range), to_utf8(entry.text).decode())
    suggested = ls.inline.suggest(Request(document, document.inside(params.position), context.invoked, selected))
    answer = await (patiently(ls, "Suggest", suggested) if context.invoked else suggested)
    ls.loading.withheld(answer.held)
    if context.invoked:
        ls.loading.answered(answer.why)
    return items.inline(document, answer.items)


@refusing
async def inline_edit(ls: Server, params: CursorParams) -> dict[str, Any]:
    """Returns the next edit that would follow the last change, if there is one."""
    document, context = ls.session.document(params.text_document.uri, params.text_document.version), params.context
    told = {one.range.start.line: one.said for one in context.diagnostics}
    shown = await ls.next_edits.offer(
        document, params.position.line, invoked=context.invoked, others=context.other_documents, told=told
    )
    return {"edits": [] if shown is None else [shown.item(ls.session.document(shown.offer.uri))]}


@refusing
async def completion(ls: Server, params: types.CompletionParams) -> types.CompletionList:
    """Returns suggestions for a cursor, for clients without inline completion."""
    document = ls.session.document(params.text_document.uri)
    request = Request(document, document.inside(params.position), invoked=not ls.session.settings.automatic)
    return items.completion(document, (await ls.inline.suggest(request)).items)


@refusing
async def code_action(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Returns the code actions for a range."""
    document = ls.session.document(params.text_document.uri).snapshot()
    asks = has_experimental(ls, "lacunaInstructions")
    return await asyncio.to_thread(actions.offered, document, params.range, params.context, asks=asks)


def feedback(kind: FeedbackKind) -> Callable[[Server, ItemParams], None]:
    """Returns the handler of a message about what the user has done with a suggestion."""

    def told(ls: Server, params: ItemParams) -> None:
        ls.inline.feedback(kind, items.origin(params.item.arguments))

    return told


def did_reject_edit(ls: Server, params: ItemParams) -> None:
    """Never offers a dismissed next edit again."""
    for id in params.item.arguments:
        ls.next_edits.dismiss(str(id))


def did_find_signatures(ls: Server, params: SignaturesParams) -> None:
    """Takes what the editor's other language servers say of the names at a cursor."""
    ls.inline.told(params.text_document.uri, params.position.line, params.signatures)


def did_focus(ls: Server, params: FocusParams) -> None:
    """Handles a move of the user to another document or place: what goes on in other documents ends."""
    if params.text_document is None:
        return
    ls.inline.left_for(params.text_document.uri)
    document = ls.session.documents.get(params.text_document.uri)
    if document is not None and params.position is not None:
        ls.inline.rests(document, document.inside(params.position))


FEATURES: dict[str, Callable[..., Any]] = {
    types.TEXT_DOCUMENT_INLINE_COMPLETION: inline_completion,
    types.TEXT_DOCUMENT_CODE_ACTION: code_action,
    types.INITIALIZE: initialize,
    types.INITIALIZED: initialized,
    types.SHUTDOWN: shutdown,
    types.EXIT: end,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: did_change_folders,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: did_change_configuration,
    types.TEXT_DOCUMENT_DID_OPEN: did_open,
    types.TEXT_DOCUMENT_DID_CHANGE: did_change,
    types.TEXT_DOCUMENT_DID_SAVE: did_save,
    types.TEXT_DOCUMENT_DID_CLOSE: did_close,
    types.NOTEBOOK_DOCUMENT_DID_OPEN: notebook_did_open,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: notebook_did_change,
    types.NOTEBOOK_DOCUMENT_DID_SAVE: notebook_did_save,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: notebook_did_close,
    protocol.DID_SHOW: feedback("shown"),
    protocol.DID_PARTIALLY_ACCEPT: feedback("partly_accepted"),
    protocol.DID_REJECT: feedback("rejected"),
    protocol.DID_FOCUS: did_focus,
    protocol.DID_FIND_SIGNATURES: did_find_signatures,
    protocol.INLINE_EDIT: inline_edit,
    protocol.DID_SHOW_EDIT: lambda ls, params: None,  # the user sees a next edit
    protocol.DID_REJECT_EDIT: did_reject_edit,
}
# Without options pygls does not advertise inline completion.
OPTIONS = {
    types.TEXT_DOCUMENT_INLINE_COMPLETION: types.InlineCompletionOptions(),
    types.TEXT_DOCUMENT_CODE_ACTION: types.CodeActionOptions([types.CodeActionKind.RefactorRewrite]),
}
