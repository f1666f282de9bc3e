"""Converts suggestions to LSP items, and back to the fills that they came from."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from lsprotocol import types
from msgspec import Meta

from lacuna_lsp.document import ClientDocument
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import MAX_CANDIDATES

ACCEPTED = "lacuna.accepted"
_WORD = re.compile(r"\w*$")


class Origin(msgspec.Struct, frozen=True):
    """The engine's fill that an item came from; the item's command carries it as its argument."""

    request: str
    candidate: Annotated[int, Meta(ge=0, lt=MAX_CANDIDATES)]


@dataclass(frozen=True, slots=True)
class Item:
    """A suggestion: ``text`` replaces the bytes ``start``..``end``."""

    text: str
    start: int
    end: int
    origin: Origin


def inline(document: ClientDocument, items: Sequence[Item]) -> types.InlineCompletionList:
    """Returns the items of ``textDocument/inlineCompletion``."""
    return types.InlineCompletionList(
        [
            types.InlineCompletionItem(item.text, range=document.span(item.start, item.end), command=_accepted(item))
            for item in items
        ]
    )


def completion(document: ClientDocument, items: Sequence[Item]) -> types.CompletionList:
    """Returns the items of ``textDocument/completion``; each includes the word before the cursor, for filtering."""
    return types.CompletionList(is_incomplete=True, items=[_completion(document, item) for item in items])


def origin(arguments: Sequence[Any]) -> Origin | None:
    """Returns the fill in the arguments of an item's command, or None; raises RequestError for wrong arguments."""
    try:
        return msgspec.convert(arguments[0], Origin) if arguments else None
    except msgspec.ValidationError as error:
        raise RequestError(f"not an item of Lacuna: {error}") from None


def _completion(document: ClientDocument, item: Item) -> types.CompletionItem:
    written = "".join(_WORD.findall(document.head(item.start)))
    text = written + item.text
    return types.CompletionItem(
        label=text.strip().splitlines()[0],
        kind=types.CompletionItemKind.Text,
        detail="Lacuna",
        documentation=item.text if "\n" in item.text else None,
        sort_text=f"\uffff{item.origin.candidate}",
        filter_text=text,
        insert_text_mode=types.InsertTextMode.AsIs,
        text_edit=types.TextEdit(document.span(item.start - len(written.encode()), item.end), text),
        command=_accepted(item),
    )


def _accepted(item: Item) -> types.Command:
    return types.Command("Accepted", ACCEPTED, arguments=[msgspec.to_builtins(item.origin)])
