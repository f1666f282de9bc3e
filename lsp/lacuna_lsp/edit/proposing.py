"""Proposes edits to the client as a ``WorkspaceEdit``: versioned, labelled and confirmed if the client supports it."""

from collections.abc import Sequence
from typing import Any

import msgspec
from lsprotocol import types

from lacuna_lsp.client.capabilities import confirms_edits, versions_edits
from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.server import Server
from lacuna_server.refactor.plan import PlannedEdit

APPLY = "Apply"


class DocumentEdits(msgspec.Struct, frozen=True):
    """The edits of one document, in order and disjoint; ``version`` is their base version, None for a file on disk."""

    document: ClientDocument
    version: int | None
    edits: tuple[PlannedEdit, ...]


async def propose(ls: Server, label: str, changes: Sequence[DocumentEdits], *, confirm: bool) -> dict[str, Any]:
    """Asks the client to apply edits, after a preview if they are to be ``confirm``-ed.

    Returns a dict with a ``status``: ``nothing``, ``applied`` (with the number of ``edits``), ``declined``, or
    ``stale`` with the ``reason`` and the ``texts`` that were not applied. The user sees the reason in one line.
    """
    if not any(change.edits for change in changes):
        return {"status": "nothing"}
    reason = _stale(ls, changes)
    if not reason:
        if confirm and not confirms_edits(ls.client_capabilities) and not await _confirmed(ls, label, changes):
            return {"status": "declined"}
        edit = workspace_edit(changes, ls.client_capabilities, confirm=confirm)
        metadata = types.WorkspaceEditMetadata(is_refactoring=confirm)
        answer = await ls.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, label, metadata))
        if answer.applied:
            return {"status": "applied", "edits": sum(len(change.edits) for change in changes)}
        reason = answer.failure_reason or _stale(ls, changes)
        if confirm and not reason:  # a preview that the user has discarded
            return {"status": "declined"}
        reason = reason or "the editor did not take the edits"
    ls.say(f"{label}: nothing was edited, {reason}")
    texts = {change.document.uri: [edit.new_text for edit in change.edits] for change in changes}
    return {"status": "stale", "reason": reason, "texts": texts}


def _stale(ls: Server, changes: Sequence[DocumentEdits]) -> str:
    """Returns a message about the first document that has changed, or ""."""
    for change in changes:
        if ls.session.is_stale(change.document, change.version):
            return f"{change.document.path} has changed meanwhile"
    return ""


async def _confirmed(ls: Server, label: str, changes: Sequence[DocumentEdits]) -> bool:
    """Asks the user in one line; for clients without a preview."""
    edits = sum(len(change.edits) for change in changes)
    message = f"{label}: {edits} edit{'s' * (edits > 1)} in {len(changes)} file{'s' * (len(changes) > 1)}"
    return await ls.ask(message, [APPLY, "Cancel"]) == APPLY


def workspace_edit(
    changes: Sequence[DocumentEdits], client: types.ClientCapabilities, *, confirm: bool
) -> types.WorkspaceEdit:
    """Returns the edits in the richest form that the client supports; ``confirm`` requests a preview per region."""
    if not versions_edits(client):
        return types.WorkspaceEdit(changes={change.document.uri: _plain(change) for change in changes})
    if not (confirm and confirms_edits(client)):
        return types.WorkspaceEdit(document_changes=[_edit(change, _plain(change)) for change in changes])
    annotations: dict[str, types.ChangeAnnotation] = {}
    edits = []
    for change in changes:
        annotated = []
        for plain, planned in zip(_plain(change), change.edits, strict=True):
            name = f"{len(annotations)}"
            line = plain.range.start.line + 1
            annotations[name] = types.ChangeAnnotation(
                label=planned.label or f"line {line}", needs_confirmation=True, description=change.document.path
            )
            annotated.append(types.AnnotatedTextEdit(name, plain.range, plain.new_text))
        edits.append(_edit(change, annotated))
    return types.WorkspaceEdit(document_changes=edits, change_annotations=annotations)


def _plain(change: DocumentEdits) -> list[types.TextEdit]:
    document = change.document
    return [types.TextEdit(document.span(edit.start, edit.end), edit.new_text) for edit in change.edits]


def _edit(change: DocumentEdits, edits: Sequence[types.TextEdit | types.AnnotatedTextEdit]) -> types.TextDocumentEdit:
    identifier = types.OptionalVersionedTextDocumentIdentifier(change.document.uri, change.version)
    return types.TextDocumentEdit(identifier, list(edits))
