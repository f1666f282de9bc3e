"""Proposes edits to the client, asks the user to confirm large ones, and reports the texts of refused edits."""

from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from lacuna_lsp.client.capabilities import confirms_edits
from lacuna_lsp.edit.edits import DocumentEdits, workspace_edit
from lacuna_lsp.session.server_connection import Server

APPLY = "Apply"


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
