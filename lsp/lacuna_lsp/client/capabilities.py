"""Predicates on the capabilities that a client declares."""

from collections.abc import Mapping

from lsprotocol.types import ClientCapabilities

STATUS_CAPABILITY = "serverStatusNotification"
INSTRUCTION_CAPABILITY = "lacunaInstructions"


def shows_progress(client: ClientCapabilities) -> bool:
    """Whether the client shows progress bars."""
    return client.window is not None and bool(client.window.work_done_progress)


def hears_status(client: ClientCapabilities) -> bool:
    """Whether the client accepts ``experimental/serverStatus``, declared as rust-analyzer's clients do."""
    return isinstance(client.experimental, Mapping) and bool(client.experimental.get(STATUS_CAPABILITY))


def asks_for_instructions(client: ClientCapabilities) -> bool:
    """Whether the client asks the user for the instruction of an edit that has none."""
    return isinstance(client.experimental, Mapping) and bool(client.experimental.get(INSTRUCTION_CAPABILITY))


def shows_documents(client: ClientCapabilities) -> bool:
    """Whether the client can open a document on request."""
    return client.window is not None and client.window.show_document is not None


def completes_inline(client: ClientCapabilities) -> bool:
    """Whether the client supports inline completion (LSP 3.18)."""
    return client.text_document is not None and client.text_document.inline_completion is not None


def has_configuration(client: ClientCapabilities) -> bool:
    """Whether the server can request the client's settings."""
    return client.workspace is not None and bool(client.workspace.configuration)


def versions_edits(client: ClientCapabilities) -> bool:
    """Whether the client accepts edits for a given version of a document."""
    edit = client.workspace.workspace_edit if client.workspace is not None else None
    return edit is not None and bool(edit.document_changes)


def confirms_edits(client: ClientCapabilities) -> bool:
    """Whether the client can ask the user to confirm single edits before it applies them."""
    edit = client.workspace.workspace_edit if client.workspace is not None else None
    return versions_edits(client) and edit is not None and edit.change_annotation_support is not None
