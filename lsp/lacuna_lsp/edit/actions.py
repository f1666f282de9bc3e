"""Code actions: offers Lacuna's commands where they apply."""

from collections.abc import Iterator
from typing import Any

from lsprotocol import types

from lacuna_lsp.document import ClientDocument
from lacuna_lsp.edit import filling
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax import language_for
from lacuna_server.files import MARKER
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.recipes import by_recipe, described, recipes
from lacuna_server.refactor.rewriting.refactoring import places

KIND = types.CodeActionKind.RefactorRewrite
MAX_BYTES = 500_000  # larger documents are not searched for places
TITLE_LENGTH = 60  # longer messages of compilers are cut in the title of a code action


def offered(
    document: ClientDocument, span: types.Range, context: types.CodeActionContext, *, asks: bool = False
) -> list[types.CodeAction]:
    """Returns the code actions for a range; skips costly searches when the editor requests actions automatically.

    A client that ``asks`` asks the user for the instruction of ``lacuna.edit`` where a code action has none.
    """
    if context.only is not None and not any(KIND.value.startswith(kind) for kind in context.only):
        return []
    found = [*_markers(document), *_selection(document, span, context)]
    if asks and span.start != span.end:
        found.append(_action("Edit the selection by an instruction…", "lacuna.edit", document, range=span))
    if context.trigger_kind != types.CodeActionTriggerKind.Automatic and document.size <= MAX_BYTES:
        found += [*_change(document, span), *_bodies(document, span), *_recipes(document)]
    return found


def _markers(document: ClientDocument) -> Iterator[types.CodeAction]:
    if count := document.text.count(MARKER.encode()):
        title = f"Fill {count} {MARKER} marker{'s' * (count > 1)}"
        yield _action(title, "lacuna.fillRegions", document, select="markers")


def _selection(
    document: ClientDocument, span: types.Range, context: types.CodeActionContext
) -> Iterator[types.CodeAction]:
    if span.start != span.end:
        messages = [{"line": one.range.start.line, "message": one.message} for one in context.diagnostics]
        yield _action("Regenerate the selection", "lacuna.regenerate", document, range=span, diagnostics=messages)
    for one in context.diagnostics:
        said = " ".join(one.message.split())
        short = said if len(said) <= TITLE_LENGTH else f"{said[: TITLE_LENGTH - 1]}…"
        instruction = f"Solve this problem in line {one.range.start.line + 1} of the file: {said}"
        yield _action(f"Solve: {short}", "lacuna.edit", document, range=one.range, instruction=instruction)


def _change(document: ClientDocument, span: types.Range) -> Iterator[types.CodeAction]:
    """Offers to propagate a line that differs from the saved text."""
    before, row = document.saved.splitlines(), span.start.line
    if document.line(row) not in before and document.line(row).strip():
        yield _action("Make this change at all places like it", "lacuna.propagate", document, position=span.start)


def _bodies(document: ClientDocument, span: types.Range) -> Iterator[types.CodeAction]:
    language = language_for(document.path, document.language)
    if language is None:
        return
    text = document.text
    try:
        name, start, end = filling.scope(text, language, document.offset(span.start))
        count = len(filling.stubs(text, language, start, end))
    except UnparsableError:  # the other actions are still offered
        return
    if count:
        title = f"Fill {count} empty {'bodies' if count > 1 else 'body'} in {name or 'this file'}"
        yield _action(title, "lacuna.fillRegions", document, select="bodies", within=document.span(start, end))


def _recipes(document: ClientDocument) -> Iterator[types.CodeAction]:
    for recipe in recipes_for(document):
        if recipe["places"]:
            summary = recipe["summary"][0].upper() + recipe["summary"][1:]
            yield _action(summary, "lacuna.refactor", document, recipe=recipe["name"])


def _action(title: str, command: str, document: ClientDocument, **arguments: Any) -> types.CodeAction:
    identifier = {"uri": document.uri, "version": document.version}
    return types.CodeAction(
        title,
        kind=KIND,
        command=types.Command(title, command, arguments=[{"textDocument": identifier} | arguments]),
    )


def recipes_for(document: ClientDocument) -> list[dict[str, Any]]:
    """Returns the recipes of the document's language.

    ``places`` is None if the recipe needs settings or the document is too large.
    """
    language = language_for(document.path, document.language)
    if language is None:
        return []
    source = Source(document.path, document.text.decode(), language)
    counted = document.size <= MAX_BYTES
    return [
        described(name) | {"places": _count(name, source) if counted and not recipe.settings else None}
        for name, recipe in recipes().items()
        if language.name in recipe.languages
    ]


def _count(name: str, source: Source) -> int:
    found, _ = places(by_recipe(name, {}), [source])
    return sum(not rewrite.support for _, rewrites in found for rewrite in rewrites)
