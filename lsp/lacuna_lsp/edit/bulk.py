"""Edits of many places, proposed in a preview."""

import asyncio
import itertools
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from lsprotocol import types
from msgspec.structs import replace
from pygls.capabilities import get_capability

from lacuna_lsp.client.protocol import OwnParams
from lacuna_lsp.document import ClientDocument
from lacuna_lsp.server import Report, Server
from lacuna_model.core.errors import RequestError
from lacuna_model.files.scanning import admits, quotable
from lacuna_model.languages.registry import require_language
from lacuna_model.syntax import language_for
from lacuna_server.files import BOM
from lacuna_server.refactor.fill import FileFill, fill_concurrently
from lacuna_server.refactor.places.gather import gather
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.plan import Plan, PlannedEdit
from lacuna_server.refactor.recipes import by_recipe
from lacuna_server.refactor.rewriting.refactoring import Refactoring, by_instruction, by_structure, by_syntax, places

# A document, with the expected version if the client sends one.
Document = types.OptionalVersionedTextDocumentIdentifier
APPLY = "Apply"
REPORTED = 100  # places, after each of which a search says how many there are
DOCUMENT_CHANGES = "workspace.workspace_edit.document_changes"


class Arguments(OwnParams, frozen=True, forbid_unknown_fields=True):
    """A JSON object with keys in camel case."""


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
    if not reason and confirm and not _confirms(ls.client_capabilities):
        count = sum(len(change.edits) for change in changes)
        size = f"{count} edit{'s' * (count > 1)} in {len(changes)} file{'s' * (len(changes) > 1)}"
        if await ls.ask(f"{label}: {size}", [APPLY, "Cancel"]) != APPLY:
            return {"status": "declined"}
        reason = _stale(ls, changes)
    if not reason:
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


def workspace_edit(
    changes: Sequence[DocumentEdits], client: types.ClientCapabilities, *, confirm: bool
) -> types.WorkspaceEdit:
    """Returns the edits in the richest form that the client supports; ``confirm`` requests a preview per region."""
    preview = confirm and _confirms(client)
    annotations: dict[str, types.ChangeAnnotation] = {}

    def made(document: ClientDocument, planned: PlannedEdit) -> types.TextEdit | types.AnnotatedTextEdit:
        span = document.span(planned.start, planned.end)
        if not preview:
            return types.TextEdit(span, planned.new_text)
        name, label = f"{len(annotations)}", planned.label or f"line {span.start.line + 1}"
        annotations[name] = types.ChangeAnnotation(label, needs_confirmation=True, description=document.path)
        return types.AnnotatedTextEdit(name, span, planned.new_text)

    edits = [(change, [made(change.document, one) for one in change.edits]) for change in changes]
    if not get_capability(client, DOCUMENT_CHANGES):
        plain = {change.document.uri: own for change, own in edits}
        return types.WorkspaceEdit(changes=plain)  # type: ignore[arg-type]  # none has an annotation
    versioned = [
        types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(change.document.uri, change.version), own)
        for change, own in edits
    ]
    return types.WorkspaceEdit(document_changes=versioned, change_annotations=annotations or None)


def _confirms(client: types.ClientCapabilities) -> bool:
    """Whether the client can ask the user to confirm single edits before it applies them."""
    annotates = get_capability(client, "workspace.workspace_edit.change_annotation_support") is not None
    return annotates and bool(get_capability(client, DOCUMENT_CHANGES))


class Refactor(Arguments, frozen=True):
    """``lacuna.refactor``: rewrites the places of a pattern or a query, or applies a recipe.

    The places become what the template says, or their lines are rewritten by the instruction. ``text_document`` is one
    open document; without it, the whole workspace is searched.
    """

    pattern: str = ""
    query: str = ""
    template: str = ""
    instruction: str = ""
    recipe: str = ""
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    language: str = ""
    text_document: Document | None = None


def refactoring(wanted: Refactor) -> Refactoring:
    """Returns the requested refactor; raises RequestError unless exactly one kind is given."""
    if wanted.instruction:
        if wanted.recipe or wanted.template:
            raise RequestError("an instruction takes the place of a template and of a recipe; give one of them")
        plain = replace(wanted, instruction="", template="<<fill>>")
        return by_instruction(refactoring(plain), wanted.instruction)
    given = [name for name in ("pattern", "query", "recipe") if getattr(wanted, name)]
    if len(given) != 1:
        raise RequestError(f"a refactor is one of pattern, query and recipe, not {' and '.join(given) or 'none'}")
    if wanted.recipe:
        return by_recipe(wanted.recipe, wanted.settings)
    language = require_language(wanted.language).name if wanted.language else ""
    if wanted.query:
        return by_syntax(wanted.query, wanted.template, language)
    return by_structure(wanted.pattern, wanted.template, language)


async def sources(ls: Server, wanted: Refactor, languages: frozenset[str]) -> tuple[list[Source], tuple[str, ...]]:
    """Returns the texts to search, and a line about each file or folder that is left out.

    Open documents are as they are in the editor, also those without a file yet; other files are as they are on disk.
    """
    if wanted.text_document is not None:
        return [source_of(ls.session.document(wanted.text_document.uri, wanted.text_document.version))], ()
    folders = ls.session.folders
    if not folders:  # without folders only the open documents are searched
        return [source for document in ls.session.documents.values() for source in _known(document, languages)], ()
    documents = [source for one in ls.session.documents.values() for source in _known(one, frozenset())]
    shown = {os.path.realpath(source.path): source for source in documents}  # a folder may be reached by a link
    found, unread = await asyncio.to_thread(gather, folders, languages, opened=shown)
    texts = {os.path.realpath(source.path): source for source in found}
    left_out = list(unread)
    for document in ls.session.documents.values():
        place = os.path.realpath(document.path)
        if place in texts:  # it may have changed meanwhile
            texts[place] = source_of(document)
        elif _is_searched(document, place, folders):
            left_out = [line for line in left_out if not line.startswith((f"{document.path} ", f"{document.path}:"))]
            for source in _known(document, languages):
                if quotable(source.text.replace("\0", "")):
                    texts[place] = source
                else:
                    left_out.append(f"{document.path} is generated or holds a credential")
    return list(texts.values()), tuple(left_out)


def _is_searched(document: ClientDocument, place: str, folders: Sequence[str]) -> bool:
    """Returns whether the folders have a document that was not found on disk, at its real ``place``.

    A document without a name is in them, too.
    """
    if document.uri.startswith("untitled:"):
        return True
    real = [Path(os.path.realpath(folder)) for folder in folders]
    return document.uri.startswith("file:") and any(admits(path, Path(place)) for path in real)


async def plan(ls: Server, wanted: Refactoring, looked_at: Sequence[Source], report: Report) -> Plan:
    """Finds the places and fills their holes; ``report`` gets a message and the finished share (0..1).

    Files that are not open and may not be written are left out.
    """
    ls.inline.hide()
    loop, counted = asyncio.get_running_loop(), itertools.count(1)

    def found_one() -> None:
        if (number := next(counted)) % REPORTED == 0:
            loop.call_soon_threadsafe(report, f"{number} places found", 0.0)

    found, left_out = await asyncio.to_thread(places, wanted, looked_at, found_one)
    fills = [FileFill(source, rewrites) for source, rewrites in found]
    total, done = sum(len(rewrites) for _, rewrites in found), 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(f"{done} of {total} places", done / total)

    await fill_concurrently(fills, partial(ls.engine.answer, aside=uuid4().hex), advance)
    return Plan(wanted.title, tuple(fill.edits() for fill in fills), tuple(left_out))


def changes(ls: Server, proposed: Plan, looked_at: Sequence[Source]) -> list[DocumentEdits]:
    """Converts a plan to changes of documents, including files that are not open."""
    texts = {source.path: source for source in looked_at}
    opened = {document.path: document for document in ls.session.documents.values()}
    found = []
    for file in proposed.ready.files:
        source = texts[file.path]
        uri = Path(source.path).absolute().as_uri()
        document, skipped = opened.get(file.path), 0
        if document is None:  # editors do not count a byte order mark as text
            document = ClientDocument(uri, source.text.removeprefix(BOM), 0, source.language.name, ls.session.encoding)
            skipped = len(source.data) - document.size
        moved = (replace(edit, start=edit.start - skipped, end=edit.end - skipped) for edit in file.edits)
        found.append(DocumentEdits(document, file.version, tuple(moved)))
    return found


def _known(document: ClientDocument, languages: frozenset[str]) -> list[Source]:
    """Returns an open document if it is in one of the languages; an empty set means any language."""
    language = language_for(document.path, document.language)
    return [source_of(document)] if language is not None and (not languages or language.name in languages) else []


def source_of(document: ClientDocument) -> Source:
    """Returns an open document as the source of a refactor; raises RequestError if its language is unknown."""
    language = language_for(document.path, document.language)
    if language is None:
        raise RequestError(f"{document.path} is in no language that can be refactored: {document.language}")
    return Source(document.path, document.text.decode(), language, document.version)
