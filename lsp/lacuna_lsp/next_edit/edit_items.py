"""Converts an offer to an edit in the form of Copilot's server, and back to its id."""

from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.next_edit.next_edits import ShownOffer

ACCEPTED = "lacuna.acceptedEdit"


def item(document: ClientDocument, shown: ShownOffer) -> dict[str, Any]:
    """Returns an offer: whole lines without the last line ending, their new text, and the command of an acceptance."""
    offer = shown.offer
    old, new = _without_shared_end(offer.old, offer.new)
    start = document.offset(types.Position(offer.row, 0))
    return {
        "text": new,
        "range": document.span(start, start + len(old.encode())),
        "textDocument": {"uri": document.uri, "version": shown.version},
        "command": {"title": "Accept the edit", "command": ACCEPTED, "arguments": [shown.id]},
    }


def id_of(arguments: Sequence[Any]) -> str:
    """Returns the id of an offer from its command's arguments, or "" if they have none."""
    return arguments[0] if arguments and isinstance(arguments[0], str) else ""


def _without_shared_end(old: str, new: str) -> tuple[str, str]:
    end = next((end for end in ("\r\n", "\n", "\r") if old.endswith(end) and new.endswith(end)), "")
    return old.removesuffix(end), new.removesuffix(end)
