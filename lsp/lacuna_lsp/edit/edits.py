"""Converts proposed edits to a ``WorkspaceEdit``: versioned, labelled and confirmed if the client supports it."""

from collections.abc import Sequence

import msgspec
from lsprotocol import types

from lacuna_lsp.client.capabilities import confirms_edits, versions_edits
from lacuna_lsp.documents.document import ClientDocument
from lacuna_server.refactor.plan import PlannedEdit


class DocumentEdits(msgspec.Struct, frozen=True):
    """The edits of one document, in order and disjoint; ``version`` is their base version, None for a file on disk."""

    document: ClientDocument
    version: int | None
    edits: tuple[PlannedEdit, ...]


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
