"""Handlers of Lacuna's commands for ``workspace/executeCommand``."""

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types

from lacuna_lsp import context
from lacuna_lsp.client.capabilities import shows_documents
from lacuna_lsp.client.errors import StaleError
from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.edit.arguments import (
    ContextArguments,
    EditArguments,
    FillRegions,
    NextPart,
    Propagate,
    Recipes,
    Refactor,
    Regenerate,
    read,
)
from lacuna_lsp.edit.edits import DocumentEdits
from lacuna_lsp.edit.proposing import propose
from lacuna_lsp.logs import log_path
from lacuna_lsp.next_edit import edit_items
from lacuna_lsp.session.progress import Report, working
from lacuna_lsp.session.server_connection import Server, refusing
from lacuna_lsp.suggest import items
from lacuna_lsp.suggest.parts import first_part
from lacuna_model.core.errors import RequestError
from lacuna_model.hub import atomic
from lacuna_server.refactor.plan import PlannedEdit

SHOW_REFUSED = "Show what it wrote"

if TYPE_CHECKING:
    from lacuna_server.refactor.places.source import Source
    from lacuna_server.refactor.plan import Plan


@refusing
async def accepted(ls: Server, *arguments: Any) -> None:
    """Reports an accepted suggestion to the engine; every item carries this command."""
    ls.session.feedback("accepted", items.origin_of(arguments))


async def accepted_edit(ls: Server, *arguments: Any) -> None:
    """Takes notice of an accepted next edit; every edit carries this command. The edit itself tells it as well."""


async def status(ls: Server, *arguments: Any) -> dict[str, Any]:
    """Returns the engine's state, the counts of suggestions and the path of the log."""
    engine = await ls.session.engine.status()
    counts = msgspec.to_builtins(ls.session.inline.counts)
    return {
        **ls.loading.status(),
        "engine": msgspec.to_builtins(engine),
        "suggestions": counts,
        "nextEdits": dataclasses.asdict(ls.session.next_edits.counts),
        "log": str(log_path()),
    }


async def show_log(ls: Server, *arguments: Any) -> dict[str, Any]:
    """Opens the log if the client can; returns its path."""
    path = log_path()
    if shows_documents(ls.client_capabilities):
        await ls.show_file(path)
    return {"path": str(path)}


@refusing
async def fill_regions(ls: Server, *arguments: Any) -> dict[str, Any]:
    """Fills ranges, markers or empty bodies together."""
    from lacuna_lsp.edit import filling

    wanted = read(FillRegions, arguments)
    document = ls.session.document(wanted.text_document.uri, wanted.text_document.version)
    version, regions = document.version, filling.regions(document, wanted)
    label = f"Fill {len(regions)} place{'s' * (len(regions) > 1)}"
    async with working(ls, label) as report:
        await awake(ls, report, document)
        found = await filling.fill(ls.session, document, regions)
    outcome = await propose(ls, label, [DocumentEdits(document, version, tuple(found))], confirm=False)
    return outcome | {"left": len(regions) - len(found)}


@refusing
async def regenerate(ls: Server, *arguments: Any) -> dict[str, Any]:
    """Finds other texts for a selection; with ``choose``, the user's choice replaces the selection."""
    from lacuna_lsp.edit import filling

    wanted = read(Regenerate, arguments)
    document = ls.session.document(wanted.text_document.uri, wanted.text_document.version)
    version, (start, end) = document.version, document.bounds(wanted.range)
    async with working(ls, "Regenerate") as report:
        await awake(ls, report, document)
        texts = await filling.alternatives(ls.session, document, wanted)
    titles = {f"{number}: {' '.join(text.split())[:60]}": text for number, text in enumerate(texts, start=1)}
    chosen = titles.get(await ls.ask("Lacuna: which one?", titles)) if wanted.choose and texts else None
    if chosen is None:
        return {"status": "offered" if texts else "nothing", "alternatives": texts}
    change = DocumentEdits(document, version, (PlannedEdit(start, end, chosen, ""),))
    return await propose(ls, "Regenerate", [change], confirm=False) | {"alternatives": texts}


@refusing
async def edit(ls: Server, *arguments: Any) -> dict[str, Any]:
    """Rewrites the lines of a range by an instruction, and proposes the new text for confirmation."""
    from lacuna_lsp.edit import instructed
    from lacuna_server.refactor.rewriting.rewrite import first_line

    wanted = read(EditArguments, arguments)
    document = ls.session.document(wanted.text_document.uri, wanted.text_document.version)
    version, title = document.version, f"Edit: {first_line(wanted.instruction)}"
    async with working(ls, title) as report:
        await awake(ls, report, document)
        found, message, refused = await instructed.rewritten(ls.session, document, wanted)
    if refused:
        if not shows_documents(ls.client_capabilities):
            raise RequestError(message)
        await show_refused(ls, message, refused)
        return {"status": "refused", "message": message}
    outcome = await propose(ls, title, [DocumentEdits(document, version, tuple(found))], confirm=True)
    return outcome | {"message": message}


async def awake(ls: Server, report: Report, document: ClientDocument) -> None:
    """Waits for an engine that starts, and says so; raises StaleError if the document is edited meanwhile."""
    version = document.version
    await ls.session.engine.becomes_ready(
        lambda news: report(f"waits for the engine, {news.message or news.state}", news.fraction)
    )
    if ls.session.is_stale(document, version):
        raise StaleError(f"{document.path} has changed meanwhile")


async def show_refused(ls: Server, message: str, diff: str) -> None:
    """Tells the user why a text was refused; a button opens a diff of it."""
    if not await ls.ask(f"Lacuna: {message}", [SHOW_REFUSED], types.MessageType.Warning):
        return
    path = log_path().with_name("refused.diff")
    with atomic.replacing(path, private=True) as stream:
        stream.write(diff.encode())
    await ls.show_file(path)


@refusing
async def recipes(ls: Server, *arguments: Any) -> dict[str, Any]:
    """Returns the ready-made refactors for a document."""
    from lacuna_lsp.edit.recipes import offered

    document = ls.session.document(read(Recipes, arguments).text_document.uri).snapshot()
    return {"recipes": await asyncio.to_thread(offered, document)}


@refusing
async def refactor(ls: Server, *arguments: Any) -> dict[str, Any]:
    """Rewrites many places by a template, fills its holes, and proposes the edits for confirmation."""
    from lacuna_lsp.edit import bulk

    wanted = read(Refactor, arguments)
    asked = bulk.refactoring(ls.session, wanted)
    async with working(ls, asked.title) as report:
        looked_at, unread = await bulk.sources(ls.session, wanted, asked.languages)
        plan = await bulk.plan(ls.session, asked, looked_at, report)
        plan = msgspec.structs.replace(plan, left_out=(*unread, *plan.left_out))
    return await offer(ls, plan, looked_at)


@refusing
async def propagate(ls: Server, *arguments: Any) -> dict[str, Any]:
    """Makes the user's last change at every similar place."""
    from lacuna_lsp.edit import bulk, following

    async with working(ls, "Make the change everywhere") as report:
        asked, looked_at = await following.followed(ls.session, read(Propagate, arguments))
        plan = await bulk.plan(ls.session, asked, looked_at, report)
    return await offer(ls, plan, looked_at)


async def offer(ls: Server, plan: "Plan", looked_at: "Sequence[Source]") -> dict[str, Any]:
    """Proposes the edits of a plan, and reports the places that they leave out."""
    from lacuna_lsp.edit import bulk

    if plan.left_out:
        others = f", and {len(plan.left_out) - 1} more" if len(plan.left_out) > 1 else ""
        ls.say(f"{plan.title}: {plan.left_out[0]}{others}")
    outcome = await propose(ls, plan.title, bulk.changes(ls.session, plan, looked_at), confirm=True)
    return outcome | {"ready": plan.num_ready, "failed": plan.num_failed, "leftOut": plan.left_out}


@refusing
async def show_context(ls: Server, *arguments: Any) -> dict[str, Any]:
    """Returns the snippets of other files that a fill at a place would read, with reasons."""
    wanted = read(ContextArguments, arguments)
    document = ls.session.document(wanted.text_document.uri)
    async with working(ls, "Reading the project for context"):
        return await context.report(document, wanted.position, ls.session.engine.workspace(document.path))


@refusing
async def next_part(ls: Server, *arguments: Any) -> dict[str, Any]:
    """Returns the next word or line of a suggestion."""
    wanted = read(NextPart, arguments)
    return {"text": first_part(wanted.text, wanted.unit)}


COMMANDS: dict[str, Callable[..., Any]] = {
    items.ACCEPTED: accepted,
    edit_items.ACCEPTED: accepted_edit,
    "lacuna.status": status,
    "lacuna.showLog": show_log,
    "lacuna.fillRegions": fill_regions,
    "lacuna.regenerate": regenerate,
    "lacuna.edit": edit,
    "lacuna.recipes": recipes,
    "lacuna.refactor": refactor,
    "lacuna.propagate": propagate,
    "lacuna.showContext": show_context,
    "lacuna.nextPart": next_part,
}
