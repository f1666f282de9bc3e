"""Lists the ready-made refactors for a document, with the number of places that each would change."""

from typing import Any

from lacuna_lsp.documents.document import ClientDocument
from lacuna_model.syntax import language_for
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.recipes import by_recipe, described, recipes
from lacuna_server.refactor.rewriting.refactoring import places

MAX_BYTES = 500_000  # larger documents are not searched for places


def offered(document: ClientDocument) -> list[dict[str, Any]]:
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
