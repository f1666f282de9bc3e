"""What a client can do."""

from collections.abc import Mapping

from lsprotocol.types import ClientCapabilities

STATUS_CAPABILITY = "serverStatusNotification"


def shows_progress(client: ClientCapabilities) -> bool:
    """Whether it has progress bars."""
    return client.window is not None and bool(client.window.work_done_progress)


def hears_status(client: ClientCapabilities) -> bool:
    """Whether it wants to be told how the engine is, as rust-analyzer's clients say it."""
    return isinstance(client.experimental, Mapping) and bool(client.experimental.get(STATUS_CAPABILITY))


def shows_documents(client: ClientCapabilities) -> bool:
    """Whether it opens a document that we name."""
    return client.window is not None and client.window.show_document is not None


def completes_inline(client: ClientCapabilities) -> bool:
    """Whether it knows inline completion (LSP 3.18)."""
    return client.text_document is not None and client.text_document.inline_completion is not None


def has_configuration(client: ClientCapabilities) -> bool:
    """Whether its settings can be asked for."""
    return client.workspace is not None and bool(client.workspace.configuration)


def versions_edits(client: ClientCapabilities) -> bool:
    """Whether it takes edits for a version of a document."""
    edit = client.workspace.workspace_edit if client.workspace is not None else None
    return edit is not None and bool(edit.document_changes)


def confirms_edits(client: ClientCapabilities) -> bool:
    """Whether it shows edits one by one before it makes them."""
    edit = client.workspace.workspace_edit if client.workspace is not None else None
    return versions_edits(client) and edit is not None and edit.change_annotation_support is not None
