"""Handlers of Lacuna's commands for ``workspace/executeCommand``."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any

import msgspec
from lsprotocol import types
from msgspec import Meta
from pygls.capabilities import get_capability

from lacuna_lsp import offers
from lacuna_lsp.client.client_session import StaleError
from lacuna_lsp.connection import BUDGET
from lacuna_lsp.document import ClientDocument
from lacuna_lsp.edit import bulk, filling
from lacuna_lsp.edit.actions import recipes_for
from lacuna_lsp.edit.bulk import Arguments, Document, DocumentEdits, Refactor, propose
from lacuna_lsp.edit.filling import EditArguments, FillRegions, Propagate, Regenerate
from lacuna_lsp.server import Report, Server, refusing, working
from lacuna_lsp.suggest import items
from lacuna_model.core.errors import RequestError
from lacuna_model.hub import atomic
from lacuna_server.client.starting import log_path
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.plan import Plan, PlannedEdit
from lacuna_server.refactor.rewriting.rewrite import first_line

SHOW_REFUSED = "Show what it wrote"
Handler = Callable[..., Coroutine[Any, Any, Any]]

COMMANDS: dict[str, Callable[..., Any]] = {}


def command(name: str, kind: type[Arguments] | None = None) -> Callable[[Handler], Handler]:
    """Decorates the handler of a command; its arguments are converted to one of this kind."""

    def entered(handler: Handler) -> Handler:
        async def called(ls: Server, *arguments: Any) -> Any:
            return await handler(ls, *(arguments if kind is None else [_read(kind, arguments)]))

        COMMANDS[name] = refusing(called)
        return handler

    return entered


def _read(kind: type[Arguments], arguments: Sequence[Any]) -> Arguments:
    """Converts a command's arguments to ``kind``; raises RequestError with the reason if they are wrong."""
    if len(arguments) != 1:
        raise RequestError(f"this command takes one argument, an object, not {len(arguments)}")
    try:
        return msgspec.convert(arguments[0], kind)
    except msgspec.ValidationError as error:
        raise RequestError(f"bad argument: {error}") from None


@command(items.ACCEPTED)
async def accepted(ls: Server, *arguments: Any) -> None:
    """Reports an accepted suggestion to the engine; every item carries this command."""
    ls.inline.feedback("accepted", items.origin(arguments))


@command(offers.ACCEPTED)
async def accepted_edit(ls: Server, *arguments: Any) -> None:
    """Takes notice of an accepted next edit; every edit carries this command. The edit itself tells it as well."""


@command("lacuna.status")
async def status(ls: Server, *arguments: Any) -> dict[str, Any]:
    """Returns the engine's state, the counts of suggestions and the path of the log."""
    engine = await ls.engine.status()
    return {
        **ls.loading.status(),
        "engine": msgspec.to_builtins(engine),
        "suggestions": ls.inline.counts,
        "suggest": ls.session.settings.suggest,
        "log": str(log_path("lsp")),
    }


@command("lacuna.showLog")
async def show_log(ls: Server, *arguments: Any) -> dict[str, Any]:
    """Opens the log if the client can; returns its path."""
    path = log_path("lsp")
    if get_capability(ls.client_capabilities, "window.show_document"):
        await ls.show_file(path)
    return {"path": str(path)}


@command("lacuna.fillRegions", FillRegions)
async def fill_regions(ls: Server, wanted: FillRegions) -> dict[str, Any]:
    """Fills ranges, markers or empty bodies together."""
    document = ls.session.document(wanted.text_document.uri, wanted.text_document.version)
    version, regions = document.version, filling.regions(document, wanted)
    label = f"Fill {len(regions)} place{'s' * (len(regions) > 1)}"
    async with working(ls, label) as report:
        await awake(ls, report, document)
        found = await filling.fill(ls, document, regions)
    outcome = await propose(ls, label, [DocumentEdits(document, version, tuple(found))], confirm=False)
    return outcome | {"left": len(regions) - len(found)}


@command("lacuna.regenerate", Regenerate)
async def regenerate(ls: Server, wanted: Regenerate) -> dict[str, Any]:
    """Finds other texts for a selection; with ``choose``, the user's choice replaces the selection."""
    document = ls.session.document(wanted.text_document.uri, wanted.text_document.version)
    version, (start, end) = document.version, document.bounds(wanted.range)
    async with working(ls, "Regenerate") as report:
        await awake(ls, report, document)
        texts = await filling.alternatives(ls, document, wanted)
    titles = {f"{number}: {' '.join(text.split())[:60]}": text for number, text in enumerate(texts, start=1)}
    chosen = titles.get(await ls.ask("Lacuna: which one?", titles)) if wanted.choose and texts else None
    if chosen is None:
        return {"status": "offered" if texts else "nothing", "alternatives": texts}
    change = DocumentEdits(document, version, (PlannedEdit(start, end, chosen, ""),))
    return await propose(ls, "Regenerate", [change], confirm=False) | {"alternatives": texts}


@command("lacuna.edit", EditArguments)
async def edit(ls: Server, wanted: EditArguments) -> dict[str, Any]:
    """Rewrites the lines of a range by an instruction, and proposes the new text for confirmation."""
    document = ls.session.document(wanted.text_document.uri, wanted.text_document.version)
    version, title = document.version, f"Edit: {first_line(wanted.instruction)}"
    async with working(ls, title) as report:
        await awake(ls, report, document)
        found, message, refused = await filling.rewritten(ls, document, wanted)
    if refused:
        if not get_capability(ls.client_capabilities, "window.show_document"):
            raise RequestError(message)
        if await ls.ask(f"Lacuna: {message}", [SHOW_REFUSED], types.MessageType.Warning):
            path = log_path("lsp").with_name("refused.diff")
            with atomic.replacing(path, private=True) as stream:
                stream.write(refused.encode())
            await ls.show_file(path)
        return {"status": "refused", "message": message}
    label = f"{title} ({message})" if found and message else title
    outcome = await propose(ls, label, [DocumentEdits(document, version, tuple(found))], confirm=True)
    return outcome | {"message": message}


async def awake(ls: Server, report: Report, document: ClientDocument) -> None:
    """Waits for an engine that starts, and says so; raises StaleError if the document is edited meanwhile."""
    version = document.version
    await ls.engine.becomes_ready(
        lambda news: report(f"waits for the engine, {news.message or news.state}", news.fraction)
    )
    if ls.session.is_stale(document, version):
        raise StaleError(f"{document.path} has changed meanwhile")


class Recipes(Arguments, frozen=True):
    """``lacuna.recipes``: the document to list recipes for."""

    text_document: Document


@command("lacuna.recipes", Recipes)
async def recipes(ls: Server, wanted: Recipes) -> dict[str, Any]:
    """Returns the ready-made refactors for a document."""
    document = ls.session.document(wanted.text_document.uri).snapshot()
    return {"recipes": await asyncio.to_thread(recipes_for, document)}


@command("lacuna.refactor", Refactor)
async def refactor(ls: Server, wanted: Refactor) -> dict[str, Any]:
    """Rewrites many places by a template, fills its holes, and proposes the edits for confirmation."""
    asked = bulk.refactoring(wanted)
    async with working(ls, asked.title) as report:
        looked_at, unread = await bulk.sources(ls, wanted, asked.languages)
        plan = await bulk.plan(ls, asked, looked_at, report)
        plan = msgspec.structs.replace(plan, left_out=(*unread, *plan.left_out))
    return await offer(ls, plan, looked_at)


@command("lacuna.propagate", Propagate)
async def propagate(ls: Server, wanted: Propagate) -> dict[str, Any]:
    """Makes the user's last change at every similar place."""
    async with working(ls, "Make the change everywhere") as report:
        asked, looked_at = await filling.followed(ls, wanted, partial(awake, ls, report))
        plan = await bulk.plan(ls, asked, looked_at, report)
    return await offer(ls, plan, looked_at)


async def offer(ls: Server, plan: Plan, looked_at: Sequence[Source]) -> dict[str, Any]:
    """Proposes the edits of a plan, and reports the places that they leave out."""
    if plan.left_out:
        others = f", and {len(plan.left_out) - 1} more" if len(plan.left_out) > 1 else ""
        ls.say(f"{plan.title}: {plan.left_out[0]}{others}")
    outcome = await propose(ls, plan.title, bulk.changes(ls, plan, looked_at), confirm=True)
    return outcome | {"ready": plan.num_ready, "failed": plan.num_failed, "leftOut": plan.left_out}


class ContextArguments(Arguments, frozen=True):
    """``lacuna.showContext``: a place in a document."""

    text_document: Document
    position: types.Position


@command("lacuna.showContext", ContextArguments)
async def show_context(ls: Server, wanted: ContextArguments) -> dict[str, Any]:
    """Returns the snippets of other files that a fill at a place would read, the most relevant first, with reasons."""
    document = ls.session.document(wanted.text_document.uri)
    if not PurePath(document.path).is_absolute():
        raise RequestError(f"{document.path} is in no folder yet: save it first")
    async with working(ls, "Reading the project for context") as report:
        await awake(ls, report, document)
        snippets, why = await ls.engine.snippets(document, document.inside(wanted.position))
    return {
        "workspace": ls.session.workspace(document.path),
        "budget": BUDGET,
        "tokens": sum(one.tokens for one in snippets),
        "snippets": msgspec.to_builtins(sorted(snippets, key=lambda one: one.score, reverse=True)),
        "message": why,
    }


class Snooze(Arguments, frozen=True):
    """``lacuna.snooze``: for how many minutes nothing is suggested without a request; 0: suggestions go on."""

    minutes: Annotated[float, Meta(ge=0, le=24 * 60)] = 10


@command("lacuna.snooze", Snooze)
async def snooze(ls: Server, wanted: Snooze) -> dict[str, Any]:
    """Suggests nothing without a request for some minutes; returns them."""
    ls.session.snooze(wanted.minutes)
    ls.inline.left_for("")
    ls.loading.snoozed()
    return {"minutes": wanted.minutes}
