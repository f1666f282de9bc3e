"""Handlers of LSP messages; each passes its message to the client's session."""

import asyncio
from collections.abc import Callable
from typing import Any

from lsprotocol import types

from lacuna_lsp.client.capabilities import asks_for_instructions, completes_inline, has_configuration
from lacuna_lsp.client.protocol import (
    DID_FOCUS,
    DID_PARTIALLY_ACCEPT,
    DID_REJECT,
    DID_REJECT_EDIT,
    DID_SHOW,
    DID_SHOW_EDIT,
    INLINE_EDIT,
    EditItemParams,
    FocusParams,
    InlineCompletionParams,
    InlineEditParams,
    ItemParams,
)
from lacuna_lsp.next_edit import edit_items
from lacuna_lsp.session.progress import patiently
from lacuna_lsp.session.server_connection import Server, refusing
from lacuna_lsp.suggest import items


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """Stores encoding, settings and folders; adds plain completion for clients without inline completion."""
    ls.session.encoding = types.PositionEncodingKind(ls.workspace.position_encoding).value
    ls.session.read_files(ls.folders)
    ls.session.configure(params.initialization_options)
    ls.session.engine.folders = ls.folders
    if not completes_inline(params.capabilities):
        ls.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions())(completion)


def initialized(ls: Server, params: types.InitializedParams) -> None:
    """Starts the session: the client accepts messages now."""
    ls.start()


def shutdown(ls: Server, params: None) -> None:
    """Records the request to shut down."""
    ls.shut_down = True


def end(ls: Server, params: None) -> None:
    """Ends the conversation."""
    ls.ended.set()


def did_change_folders(ls: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Stores the client's folders."""
    ls.session.engine.folders = ls.folders


async def did_change_configuration(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """Applies new settings; requests them if the message does not contain them."""
    values = params.settings
    if values is None and has_configuration(ls.client_capabilities):
        items = [types.ConfigurationItem(section="lacuna")]
        (values,) = await ls.workspace_configuration_async(types.ConfigurationParams(items))
    ls.session.configure(values)


def did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """Opens a document."""
    ls.session.open(params.text_document)


def did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """Applies changes to a document."""
    ls.session.change(params.text_document, params.content_changes)


def did_save(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
    """Stores the saved text, against which changes are found."""
    document = ls.session.document(params.text_document.uri)
    document.saved = document.text


def did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """Closes a document."""
    ls.session.close_document(params.text_document.uri)


def notebook_did_open(ls: Server, params: types.DidOpenNotebookDocumentParams) -> None:
    """Opens a notebook and its cells."""
    ls.session.notebooks.open(params.notebook_document)
    for cell in params.cell_text_documents:
        ls.session.open(cell)


def notebook_did_change(ls: Server, params: types.DidChangeNotebookDocumentParams) -> None:
    """Applies inserted, deleted or edited cells."""
    ls.session.change_notebook(params.notebook_document.uri, params.change)


def notebook_did_close(ls: Server, params: types.DidCloseNotebookDocumentParams) -> None:
    """Closes a notebook and its cells."""
    ls.session.notebooks.close(params.notebook_document.uri)
    for cell in params.cell_text_documents:
        ls.session.close_document(cell.uri)


@refusing
async def inline_completion(ls: Server, params: InlineCompletionParams) -> types.InlineCompletionList:
    """Returns suggestions for a cursor; tells the client why there are none for a user who asked for them."""
    document = ls.session.document(params.text_document.uri, params.text_document.version)
    request = ls.session.request(
        document,
        params.position,
        invoked=params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked,
        selected=params.context.selected_completion_info,
    )
    suggested = ls.session.inline.suggest(request)
    answer = await (patiently(ls, "Suggest", suggested) if request.invoked else suggested)
    ls.loading.withheld(answer.held)
    if request.invoked:
        ls.loading.answered(answer.why)
    return items.inline(document, answer.items)


@refusing
async def inline_edit(ls: Server, params: InlineEditParams) -> dict[str, Any]:
    """Returns the next edit that would follow the last change, if there is one."""
    session, uri = ls.session, params.text_document.uri
    document = session.document(uri, params.text_document.version)
    context = params.context
    told = {one.range.start.line: one.message for one in context.diagnostics}
    shown = await session.next_edits.offer(document, params.position.line, others=context.other_documents, told=told)
    return {"edits": [] if shown is None else [edit_items.item(session.document(shown.offer.uri), shown)]}


@refusing
async def completion(ls: Server, params: types.CompletionParams) -> types.CompletionList:
    """Returns suggestions for a cursor, for clients without inline completion."""
    document = ls.session.document(params.text_document.uri)
    request = ls.session.request(document, params.position, invoked=not ls.session.settings.automatic)
    return items.completion(document, (await ls.session.inline.suggest(request)).items)


@refusing
async def code_action(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Returns the code actions for a range."""
    from lacuna_lsp.edit import actions

    document = ls.session.document(params.text_document.uri).snapshot()
    asks = asks_for_instructions(ls.client_capabilities)
    return await asyncio.to_thread(actions.offered, document, params.range, params.context, asks=asks)


def did_show(ls: Server, params: ItemParams) -> None:
    """Reports a suggestion that the user sees."""
    ls.session.feedback("shown", items.origin(params.item))


def did_partially_accept(ls: Server, params: ItemParams) -> None:
    """Reports a suggestion that the user accepted in part."""
    taken = items.bytes_taken(params.item, params.accepted_length)
    ls.session.feedback("partly_accepted", items.origin(params.item), taken)


def did_reject(ls: Server, params: ItemParams) -> None:
    """Reports a suggestion that the user dismissed."""
    ls.session.feedback("rejected", items.origin(params.item))


def did_show_edit(ls: Server, params: EditItemParams) -> None:
    """Takes notice of a next edit that the user sees; nothing depends on it."""


def did_reject_edit(ls: Server, params: EditItemParams) -> None:
    """Never offers a dismissed next edit again."""
    if params.item.command is not None and (id := edit_items.id_of(params.item.command.arguments or ())):
        ls.session.next_edits.dismiss(id)


def did_focus(ls: Server, params: FocusParams) -> None:
    """Handles a move of the user to another document or place."""
    if params.text_document is not None:
        ls.session.focus(params.text_document.uri, params.position)


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
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: notebook_did_close,
    DID_SHOW: did_show,
    DID_PARTIALLY_ACCEPT: did_partially_accept,
    DID_REJECT: did_reject,
    DID_FOCUS: did_focus,
    INLINE_EDIT: inline_edit,
    DID_SHOW_EDIT: did_show_edit,
    DID_REJECT_EDIT: did_reject_edit,
}
# Without options pygls does not advertise inline completion.
OPTIONS = {
    types.TEXT_DOCUMENT_INLINE_COMPLETION: types.InlineCompletionOptions(),
    types.TEXT_DOCUMENT_CODE_ACTION: types.CodeActionOptions([types.CodeActionKind.RefactorRewrite]),
}
